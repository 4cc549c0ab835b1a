package main

import (
	"cmp"
	"encoding/json"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// What the records under the key of a message add to its report, one function for each kind.

// newMessageReport reads the records under the key of a message, nil if it has no text.
func newMessageReport(key subjects.Key, records []idempotency.Record, payload bool) *messageReport {
	name := key.Public(events.RecordText)
	at := indexOf(records, name)
	if at < 0 {
		return nil
	}
	text := &records[at]
	l := &messageReport{
		Key: key.String(), token: key.Turn, App: shown(key.App), Chat: shown(key.Chat), ID: shown(key.Turn), Seq: text.Seq, Time: text.Time.UTC(),
		due: text.Meta.Outcome, digest: text.Meta.Digest, Records: []recordFact{},
	}
	if run, id, ok := subjects.ParseMessageToken(key.Turn); ok {
		l.Run, l.ID = run, id
	}
	for i := range records {
		r := &records[i]
		if r.Former(text.Seq) {
			continue
		}
		fact := newRecordFact(r, text.Time)
		k, _ := subjects.ParseKey(r.Key)
		switch {
		case r.Key == name:
			l.addText(r, &fact, payload)
		case k.Call != subjects.SingleCall:
			l.addCall(k.Call, r, &fact)
		case fact.Kind == events.RecordContextUpdate:
			l.addUpdate(r, &fact)
		case fact.Kind == events.RecordStructuredOutput:
			l.addOutput(r, &fact)
		case fact.Kind == events.RecordHandoff:
			l.addHandoff(r, &fact)
		}
		l.Damaged = l.Damaged || fact.Error != ""
		l.Records = append(l.Records, fact)
	}
	return l
}

func indexOf(records []idempotency.Record, key string) int {
	for i := range records {
		if records[i].Key == key {
			return i
		}
	}
	return -1
}

func (l *messageReport) addText(r *idempotency.Record, fact *recordFact, payload bool) {
	text, err := events.ReadText(r.Data)
	if err != nil {
		fact.Error = cmp.Or(fact.Error, "its event is unreadable: "+err.Error())
		return
	}
	l.event = text
	l.App, l.Chat, l.Run, l.ID = text.AppID, text.ChatID, text.RunID, text.MessageID
	l.Sequence, l.OutOfOrder, l.Workflow, l.Agent, l.User = text.TurnSequence, text.OutOfOrder, text.WorkflowName, text.Agent, text.UserID
	l.Hidden, l.Visual, l.Model, l.turn = text.UIHidden, text.IsVisual, text.Model, text.Turn
	l.Warnings = text.Warnings
	var value json.RawMessage
	l.ContentBytes, l.ContentBlob, value = size(text.Content)
	if words, ok := text.Content.(string); ok {
		l.Content = words
	} else if payload {
		l.Content = value
	}
	if text.StructuredOutput != nil {
		l.Output = &objectFacts{Repairs: text.Repairs, Around: text.Around}
		l.Output.Bytes, l.Output.Blob, l.Output.Value = size(text.StructuredOutput)
		if !payload {
			l.Output.Value = nil
		}
	}
	if text.Unread != nil {
		l.Unread = text.Unread.Content
	}
	for _, c := range text.Changes {
		t := triggerFact{Variable: c.Variable, Value: jsonValue(c.Value)}
		if c.From != nil {
			t.From = jsonValue(c.From)
		}
		l.Triggers = append(l.Triggers, t)
	}
}

// addUpdate notes that a trigger has set its variable.
func (l *messageReport) addUpdate(r *idempotency.Record, fact *recordFact) {
	var e events.ContextUpdate
	if !read(r, fact, events.KindContextUpdate, &e) {
		return
	}
	value := jsonValue(e.Value)
	for i := range l.Triggers {
		if t := &l.Triggers[i]; t.Variable == e.Variable && string(t.Value) == string(value) && t.Seq == 0 {
			t.Seq = r.Seq
			return
		}
	}
	l.Triggers = append(l.Triggers, triggerFact{Variable: e.Variable, Value: value, Seq: r.Seq})
}

// addOutput adds the outcome of the output of an agent that has a model and no tool.
func (l *messageReport) addOutput(r *idempotency.Record, fact *recordFact) {
	var e events.StructuredOutput
	if !read(r, fact, events.KindStructuredOutput, &e) {
		return
	}
	if l.Failure = e.Code; e.Code != "" {
		l.Unread = e.Content
	}
}

func (l *messageReport) addHandoff(r *idempotency.Record, fact *recordFact) {
	e, err := events.ReadHandoff(r.Data)
	if err != nil {
		fact.Error = cmp.Or(fact.Error, "its event is unreadable: "+err.Error())
		return
	}
	l.Handoff = &handoffFact{
		Seq: r.Seq, Time: r.Time.UTC(), To: e.To, Rule: e.Rule, Reason: e.Reason, Code: e.Code, Message: e.Message, Via: e.Via, Fallback: e.Fallback, Ignored: e.Ignored,
	}
}

// addCall adds a record of a call of a model.
func (l *messageReport) addCall(call string, r *idempotency.Record, fact *recordFact) {
	at := -1
	for i := range l.Calls {
		if l.Calls[i].Call == call {
			at = i
		}
	}
	if at < 0 {
		at = len(l.Calls)
		l.Calls = append(l.Calls, agentCallFact{Call: call})
	}
	c := &l.Calls[at]
	if rule, ok := handoff.RuleOfCall(call); ok {
		c.Rule = &rule
	}
	switch fact.Kind {
	case events.RecordCall:
		var e events.ToolCall
		if !read(r, fact, events.KindToolCall, &e) {
			return
		}
		if c.Tool = e.ToolName; c.Rule != nil {
			c.Asked = jsonValue(e.Payload.ToolArgs)
		}
	case events.RecordResponse:
		var e events.ToolResponse
		if !read(r, fact, events.KindToolResponse, &e) {
			return
		}
		c.Outcome, c.Attempts = newAnswerFacts(&e, nil, r, false).outcome(), e.Attempts
		if c.Rule != nil {
			c.Reply = jsonValue(e.Payload)
		}
	}
}
