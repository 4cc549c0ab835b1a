package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// A report is made of the records of a turn in their order: each adds a fact to the list, and claim, respond and
// cancel add what theirs mean for the turn. Records that cannot be read are reported with their error. Contents
// are left out without --payload.

// States of the message that the lease of a running turn is for.
const (
	leaseThere   = "there"
	leaseGone    = "gone"
	leaseUnknown = "unknown"
)

// turnReport is the output of turnctl show: one turn with all its records.
type turnReport struct {
	Key          string          `json:"key"`
	App          string          `json:"app_id"`
	Chat         string          `json:"chat_id"`
	Run          string          `json:"run_id,omitempty"`
	Turn         string          `json:"turn"`
	State        query.TurnState `json:"state"` // unclaimed, running, parked, ended
	Meaning      string          `json:"meaning"`
	Damaged      bool            `json:"damaged,omitempty"` // a record cannot be read
	Workflow     string          `json:"workflow,omitempty"`
	Agent        string          `json:"agent,omitempty"`
	Tool         string          `json:"tool,omitempty"`
	ToolCallID   string          `json:"tool_call_id,omitempty"`
	Effect       string          `json:"effect,omitempty"`
	Owner        string          `json:"owner,omitempty"` // of the newest epoch
	Epoch        int             `json:"epoch"`
	Lease        string          `json:"lease,omitempty"`         // of the newest epoch: stream/sequence/delivery
	LeaseMessage string          `json:"lease_message,omitempty"` // of a running turn: there, gone, unknown
	Verdict      string          `json:"verdict,omitempty"`       // why the turn was rejected before its tool
	CancelReason string          `json:"cancel_reason,omitempty"` // of the cancel request
	Binding      string          `json:"binding,omitempty"`       // digest of the manifests that bound the tool
	Fingerprint  string          `json:"fingerprint,omitempty"`
	Trace        string          `json:"traceparent,omitempty"`
	Reuses       []string        `json:"reuses,omitempty"`     // keys of turns that reused its turn key with other data
	RetryOf      string          `json:"retry_of,omitempty"`   // of a retry: the turn that it retries
	RetriedAs    string          `json:"retried_as,omitempty"` // the first retry of the turn, under its usual key
	CorrectionOf string          `json:"correction_of,omitempty"`
	Message      *messageReport  `json:"message,omitempty"` // that has made the turn, or has its id
	Call         *callFacts      `json:"call"`
	Steps        []stepFact      `json:"steps,omitempty"`     // of a program, in its order
	Step         string          `json:"step,omitempty"`      // the one whose id was given
	Questions    questions       `json:"questions,omitempty"` // of the tool to people, in order
	Woken        bool            `json:"woken,omitempty"`     // parked, and its answer is stored
	Response     *answerFacts    `json:"response"`
	Records      []recordFact    `json:"records"`

	journalKey subjects.Key
	blobs      string // bucket of values that records only refer to
	message    string // token of the message that has made the turn, "" if none has
}

// callFacts are details of the tool_call event.
type callFacts struct {
	ArgsBytes int             `json:"args_bytes"`
	ArgsBlob  string          `json:"args_blob,omitempty"` // object with them, if they are large
	Args      json.RawMessage `json:"args,omitempty"`      // with --payload
}

// answerFacts are details of the tool_response event.
type answerFacts struct {
	Status       string          `json:"status"`
	Success      bool            `json:"success"`
	Code         events.Code     `json:"code,omitempty"`
	Content      string          `json:"content"`
	Attempts     int             `json:"attempts"`
	DurationMS   int64           `json:"duration_ms"` // of the tool
	TotalMS      float64         `json:"total_ms"`    // from the claim to the stored response
	ContextKeys  []string        `json:"context_keys,omitempty"`
	PayloadBytes int             `json:"payload_bytes"`
	PayloadBlob  string          `json:"payload_blob,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"` // with --payload
}

// recordFact is one record of the journal, without its content.
type recordFact struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	AfterMS float64   `json:"after_ms"` // since the first record
	Kind    string    `json:"kind"`
	ID      string    `json:"id,omitempty"`
	Step    string    `json:"step,omitempty"` // of a program: the step that it is of
	Private bool      `json:"private,omitempty"`
	Owner   string    `json:"owner,omitempty"`
	Epoch   int       `json:"epoch,omitempty"`
	Lease   string    `json:"lease,omitempty"`
	Effect  string    `json:"effect,omitempty"`
	Verdict string    `json:"verdict,omitempty"`
	Binding string    `json:"binding,omitempty"`
	Trace   string    `json:"traceparent,omitempty"`
	Bytes   int       `json:"bytes"`
	Error   string    `json:"error,omitempty"` // what is wrong with the record
}

// newTurnReport reads the records of a turn. Unreadable records are reported, and the others still shown.
func newTurnReport(t *idempotency.Turn, payload bool) *turnReport {
	l := &turnReport{Key: t.Key.String(), journalKey: t.Key, Epoch: t.Epoch, Lease: t.Lease.String(), State: query.StateOfTurn(t), Records: []recordFact{}}
	l.App, l.Chat, l.Turn = shown(t.Key.App), shown(t.Key.Chat), shown(t.Key.Turn)
	asked := t.Questions() // in the order of the records
	for i := range t.Records {
		r := &t.Records[i]
		fact := newRecordFact(r, t.Records[0].Time)
		switch {
		case t.Claim != nil && r.Seq == t.Claim.Seq:
			l.claim(r, &fact, payload)
		case t.Response != nil && r.Seq == t.Response.Seq:
			l.respond(t, r, &fact, payload)
		case fact.Kind == events.RecordTakeover && fact.Epoch == t.Epoch:
			l.Owner = fact.Owner
		case t.Cancel != nil && r.Seq == t.Cancel.Seq:
			l.cancel(r, &fact)
		case fact.Kind == events.RecordAsk && !fact.Private:
			q := newQuestion(r, &fact, payload)
			q.decided(t, &asked[len(l.Questions)])
			l.Questions = append(l.Questions, q)
		case fact.Kind == events.RecordAck:
			l.Questions.acked(r, &fact)
		}
		l.Damaged = l.Damaged || fact.Error != ""
		l.Records = append(l.Records, fact)
	}
	l.Woken = l.State == query.Parked && !t.Parked()
	l.Steps = newSteps(query.ProgramOf(t), payload)
	return l
}

// shown is the id of a token, or the token if it cannot be decoded.
func shown(token string) string {
	text, _, err := subjects.Untoken(token)
	if err != nil {
		return token
	}
	return text
}

func newRecordFact(r *idempotency.Record, first time.Time) recordFact {
	m := r.Meta
	f := recordFact{
		Seq: r.Seq, Time: r.Time.UTC(), AfterMS: milliseconds(r.Time.Sub(first)), Kind: r.Key,
		Owner: m.Owner, Epoch: m.Epoch, Lease: m.Lease.String(), Effect: m.Effect, Verdict: m.Outcome,
		Binding: m.Digest, Trace: m.Trace, Bytes: len(r.Data),
	}
	if k, ok := subjects.ParseKey(r.Key); ok {
		f.Kind, f.ID, f.Private, f.Step = k.Kind, k.ID, k.Private, subjects.StepOf(k.Call)
	} else {
		f.Error = "its key is not a journal key"
	}
	if r.Err != nil {
		f.Error = r.Err.Error()
	}
	return f
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// claim adds the tool_call record.
func (l *turnReport) claim(r *idempotency.Record, fact *recordFact, payload bool) {
	m := r.Meta
	if l.Owner == "" {
		l.Owner = m.Owner
	}
	l.Effect, l.Verdict, l.Binding, l.Fingerprint, l.Trace, l.message = m.Effect, m.Outcome, m.Digest, m.Fingerprint, m.Trace, m.Message
	var call events.ToolCall
	if !read(r, fact, events.KindToolCall, &call) {
		return
	}
	l.identify(call.AppID, call.ChatID, call.RunID, call.Turn)
	l.Workflow, l.Agent, l.Tool, l.ToolCallID = call.WorkflowName, call.Agent, call.ToolName, call.ToolCallID
	l.RetryOf, l.CorrectionOf = call.ResumeOf, call.CorrectionOf
	l.Call = newCallFacts(&call, payload)
}

func newCallFacts(call *events.ToolCall, payload bool) *callFacts {
	facts := &callFacts{}
	facts.ArgsBytes, facts.ArgsBlob, facts.Args = size(call.Payload.ToolArgs)
	if !payload {
		facts.Args = nil
	}
	return facts
}

// respond adds the tool_response record.
func (l *turnReport) respond(t *idempotency.Turn, r *idempotency.Record, fact *recordFact, payload bool) {
	var e events.ToolResponse
	if !read(r, fact, events.KindToolResponse, &e) {
		return
	}
	l.identify(e.AppID, e.ChatID, e.RunID, e.Turn)
	l.Response = newAnswerFacts(&e, t.Claim, r, payload)
}

// newAnswerFacts reads a response and the tool_call that it ends, which may be nil.
func newAnswerFacts(e *events.ToolResponse, called, r *idempotency.Record, payload bool) *answerFacts {
	facts := &answerFacts{
		Status: e.Status, Success: e.Success, Code: e.Code, Content: e.Content, Attempts: e.Attempts,
		DurationMS: e.DurationMS, ContextKeys: e.ContextKeys,
	}
	if called != nil {
		facts.TotalMS = milliseconds(r.Time.Sub(called.Time))
	}
	facts.PayloadBytes, facts.PayloadBlob, facts.Payload = size(e.Payload)
	if !payload {
		facts.Payload = nil
	}
	return facts
}

// cancel adds the cancel record, which may be the only one with ids.
func (l *turnReport) cancel(r *idempotency.Record, fact *recordFact) {
	var e events.ToolCallCancel
	if read(r, fact, events.KindToolCallCancel, &e) {
		l.identify(e.AppID, e.ChatID, e.RunID, e.Turn)
		l.CancelReason = e.Reason
		l.Workflow = cmp.Or(l.Workflow, e.WorkflowName) // a cancel request may name another workflow, or none
	}
}

// identify sets the ids from an event; the key has only tokens of them.
func (l *turnReport) identify(app, chat, run, turn string) {
	l.App, l.Chat, l.Run, l.Turn = cmp.Or(app, l.App), cmp.Or(chat, l.Chat), run, cmp.Or(turn, l.Turn)
}

// read decodes the event of a record, or adds the error to fact.
func read(r *idempotency.Record, fact *recordFact, kind string, event any) bool {
	body, err := events.Parse(r.Data)
	if err == nil && body.Kind != kind {
		err = fmt.Errorf("it is of kind %.80q, want %q", body.Kind, kind)
	}
	if err == nil {
		err = body.As(event)
	}
	if err == nil {
		return true
	}
	if fact.Error != "" {
		fact.Error += "; "
	}
	fact.Error += fmt.Sprintf("its event is unreadable: %v", err)
	return false
}

// size returns the size of a value as JSON, and the object that holds it if it is a blob.
func size(v any) (bytes int, blob string, value json.RawMessage) {
	value, err := events.AppendJSON(nil, v)
	if err != nil {
		return 0, "", nil
	}
	object, _ := v.(map[string]any)
	name, isBlob := object["$blob"].(string)
	length, isNumber := object["size"].(json.Number)
	if !isBlob || !isNumber {
		return len(value), "", value
	}
	n, err := strconv.Atoi(length.String())
	if err != nil {
		return len(value), "", value
	}
	return n, name, value
}
