package sim

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// The document of the chat: each of its revisions is compared with the one before. What a message sets, and the speaker after it, have to
// follow from the values in that revision, and nothing else changes them.

// decisionOf returns what the document has decided for a message, nil if it has no decision.
func (w *world) decisionOf(c *chatMessage, text *idempotency.Record) *variables.Decision {
	contents, err := variables.ReadContents(w.documents.data[subjects.ContextKey(app, chat)])
	if err != nil {
		return nil
	}
	return decided(contents, c.key.Turn, text.Seq)
}

func decided(contents *variables.Contents, token string, seq uint64) *variables.Decision {
	i := slices.IndexFunc(contents.Decisions, func(d variables.Decision) bool { return d.Message == token && d.Seq == seq })
	if i < 0 {
		return nil
	}
	return &contents.Decisions[i]
}

// checkRevision is called before the document of the chat is replaced.
func (w *world) checkRevision(old, next []byte) {
	if len(w.conversation) == 0 {
		return
	}
	before, err := variables.ReadContents(old)
	after, errAfter := variables.ReadContents(next)
	if err != nil || errAfter != nil {
		w.violatef("the document of the chat cannot be read: %v %v", err, errAfter)
		return
	}
	values := w.valuesOf(before)
	for i := range after.Decisions {
		d := &after.Decisions[i]
		was := decided(before, d.Message, d.Seq)
		text := w.textAt(d)
		switch {
		case text == nil:
			w.violatef("the document of the chat decides for %s, and journal %d is not its text", d.Message, d.Seq)
			continue
		case was == nil:
			w.checkUpdates(before, d, text, values)
		case was.OutOfOrder != d.OutOfOrder || !slices.Equal(was.Updates, d.Updates) || was.Handoff != nil && string(was.Handoff) != string(d.Handoff):
			w.violatef("%s: what the document of the chat has decided is replaced", text.MessageID)
		}
		if d.Handoff != nil && (was == nil || was.Handoff == nil) {
			w.checkDecision(after, d, text)
		}
	}
	if len(after.Decisions) > len(before.Decisions)+1 {
		w.violatef("one revision of the document of the chat decides for %d messages", len(after.Decisions)-len(before.Decisions))
	}
	for _, name := range []string{stage, side} {
		if now := w.valuesOf(after)[name]; !model.Equal(now, values[name]) {
			w.violatef("variable %s changes from %v to %v, and should not", name, values[name], now)
		}
	}
}

// textAt returns the text that a decision is for, nil if the journal has another record in its place.
func (w *world) textAt(d *variables.Decision) *events.Text {
	if d.Seq == 0 || d.Seq > uint64(len(w.store.log)) {
		return nil
	}
	r := &w.store.log[d.Seq-1]
	if k, ok := subjects.ParseKey(r.Key); !ok || k.Turn != d.Message || k.Kind != events.RecordText {
		return nil
	}
	return w.readText(r)
}

// valuesOf returns the variables as the worker that runs now sees them.
func (w *world) valuesOf(contents *variables.Contents) map[string]any {
	values := w.active.p.manifest.set.StartValues(workflow, &bindings.Chat{App: app, ID: chat, Workflow: workflow})
	if values == nil {
		values = map[string]any{}
	}
	for name, v := range contents.Values {
		value, err := events.Decode(v.JSON)
		if err != nil {
			value = nil
		}
		values[name] = value
	}
	return values
}

// checkUpdates checks a new decision, and applies its changes to the values before.
func (w *world) checkUpdates(before *variables.Contents, d *variables.Decision, text *events.Text, values map[string]any) {
	late := text.OutOfOrder || w.isLate(before, text)
	var want []variables.StepOf
	if !late {
		var stepped []string
		next := map[string]any{}
		for i, change := range text.Changes {
			now := values[change.Variable]
			if slices.Contains(stepped, change.Variable) || change.From != nil && !model.Equal(change.From, now) {
				continue
			}
			stepped = append(stepped, change.Variable)
			if !model.Equal(change.Value, now) {
				want, next[change.Variable] = append(want, variables.StepOf{Variable: change.Variable, Step: i}), change.Value
			}
		}
		maps.Copy(values, next)
	}
	if late != d.OutOfOrder || !slices.Equal(want, d.Updates) {
		w.violatef("%s: decided are %v (out of order: %t), and %v (%t) follow from the variables", text.MessageID, d.Updates, d.OutOfOrder, want, late)
	}
}

// isLate reports whether a later message of the run was applied before.
func (w *world) isLate(before *variables.Contents, text *events.Text) bool {
	for _, d := range slices.Backward(before.Decisions) {
		if earlier := w.textAt(&d); earlier != nil && !d.OutOfOrder && earlier.TurnSequence > 0 {
			return earlier.RunID == text.RunID && text.TurnSequence > 0 && text.TurnSequence < earlier.TurnSequence
		}
	}
	return false
}

// checkDecision checks a handoff that is decided now, by the revision that has it.
func (w *world) checkDecision(after *variables.Contents, d *variables.Decision, text *events.Text) {
	c := w.chatMessageOf(subjects.MessageKey(app, chat, text.RunID, text.MessageID).String())
	fail := func(format string, args ...any) { w.violatef("%s: "+format, append([]any{text.MessageID}, args...)...) }
	if text.Turn != "" {
		for _, t := range c.turns {
			h := w.history(t)
			delta := h.winner()
			switch {
			case h.claim == nil || h.claim.Meta.Message != c.key.Turn:
			case len(h.responses) == 0:
				fail("its handoff is decided before its turn %s has ended", t.id.Turn)
			case delta != nil && c.sawStaleRead == 0 && after.Values[variableOf(t.id.Turn)].Written < delta.Seq:
				fail("its handoff is decided without what the tool of its turn %s has changed", t.id.Turn)
			}
		}
		if t, h := w.lastTurn(c); t != c.turn && h.claim == nil && c.sawStaleRead == 0 {
			fail("its handoff is decided before its turn %s, a correction, has begun", t.id.Turn)
		}
	}
	var has handoff.Decision
	if err := json.Unmarshal(d.Handoff, &has); err != nil {
		fail("its handoff cannot be read: %v", err)
		return
	}
	if w.store.log[d.Seq-1].Meta.Digest == "" { // its worker did not have the workflow
		if has.Reason != handoff.ReasonUndecided {
			fail("its handoff is decided (%s), though it was read without the workflow", has.Reason)
		}
		return
	}
	if d.OutOfOrder {
		if has.Reason != handoff.ReasonUndecided {
			fail("its handoff is decided (%s), though a later message of the run was handled before", has.Reason)
		}
		return
	}
	content, _ := text.Content.(string)
	in := handoff.Input{Agent: text.Agent, Content: content, Last: after.Speaker, Variables: w.valuesOf(after), Answers: w.answersTo(c)}
	var wants []string
	for _, m := range w.active.manifests() {
		if m.set.WorkflowDigest(workflow) == "" { // a worker that has it decides
			continue
		}
		want, question := m.set.Handoffs(workflow).Decide(in)
		if question == nil && reflect.DeepEqual(want, has) {
			return
		}
		wants = append(wants, string(mustJSON(want)))
	}
	fail("its handoff is %s, and %q follows from the variables", d.Handoff, wants)
}

// manifests returns those that a worker had while it handled a delivery: they may change under it.
func (x *fiber) manifests() []manifest {
	if x.t == nil || x.t.manifests == 0 {
		return x.p.had
	}
	return x.p.had[x.t.manifests-1:]
}

// answersTo returns what the decider of handoffs has answered about a message, by the tokens of its calls.
func (w *world) answersTo(c *chatMessage) map[string]handoff.Answer {
	answers := map[string]handoff.Answer{}
	for name := range w.store.keys {
		k, _ := subjects.ParseKey(name)
		if _, asked := handoff.RuleOfCall(k.Call); !asked || k.OfTurn() != c.key.OfTurn() || k.Kind != events.RecordResponse {
			continue
		}
		r := w.stored(name)
		answers[k.Call] = handoff.AnswerFailed
		if response, err := events.ReadResponse(r.Data); err == nil && response.FailureCode() == "" {
			if raw, err := events.AppendJSON(nil, response.Payload); err == nil {
				reply, _ := events.Decode(raw)
				answers[k.Call] = handoff.ReadAnswer(reply)
			}
		}
	}
	return answers
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own value
	}
	return data
}
