package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// Whether the conditions of a handoff have seen the value that a variable has now. The document of the chat has the order in which
// messages and answers have set variables, which is not the order of their records: a message whose text is stored first may set its
// variables last. What a tool has set counts from the response of its turn on. Where that order is not kept, or the handoff was decided
// at an unknown point of it, it is not known whether the value was seen.

// seenFact is a context variable in a condition.
type seenFact struct {
	Name   string          `json:"name"`
	Value  json.RawMessage `json:"value,omitempty"`
	Exists bool            `json:"exists"`
	Record uint64          `json:"record,omitempty"` // that has set it last
	Seen   bool            `json:"seen"`             // the conditions have seen this value
	AsOf   string          `json:"as_of"`            // as a sentence
}

// history is what is known of the order in which the variables of a chat were set.
type history struct {
	journal *kvstore.Store
	message *messageReport
	state   *variables.State
}

// when is the time of a change, compared with the handoff.
type when int

const (
	whenUnknown when = iota
	whenBefore
	whenAfter
)

// own returns the place of the message among the decisions of the chat, -1 if that is not kept: all that are kept are later.
func (h *history) own() int {
	return slices.IndexFunc(h.state.Decided, func(d variables.Decision) bool { return d.Message == h.message.token && d.Seq == h.message.Seq })
}

// when returns when a record has set a variable to the value that it has.
func (h *history) when(ctx context.Context, name string, record uint64) when {
	own, handoff := h.own(), h.message.Handoff
	for _, d := range h.state.Decided[own+1:] { // a change of a later one may keep the number of a newer record
		if !slices.Contains(d.Changed(), name) {
			continue
		}
		if h.message.turn == "" || handoff == nil || d.Seq > handoff.Seq {
			return whenAfter
		}
		return whenUnknown // the handoff was decided later, when the turn had ended
	}
	switch {
	case handoff != nil && record > handoff.Seq:
		return whenAfter
	case slices.ContainsFunc(h.state.Decided[:own+1], func(d variables.Decision) bool { return d.Seq == record }):
		return whenBefore
	}
	r, err := h.journal.At(ctx, record)
	key, ok := subjects.ParseKey(r.Key)
	switch {
	case err != nil || !ok: // expired
		return whenUnknown
	case key.Kind == events.RecordDelta:
		return h.whenMerged(ctx, key.Key, record)
	case own >= 0: // a message or an answer whose decision was dropped, for newer ones
		return whenBefore
	}
	return whenUnknown
}

// whenMerged returns when a change of a tool has begun to count.
func (h *history) whenMerged(ctx context.Context, call subjects.Key, delta uint64) when {
	end, err := h.journal.Last(ctx, call.Public(events.RecordResponse))
	own := slices.ContainsFunc(h.message.Turns, func(t messageTurn) bool { return t.Key == call.OfTurn().String() })
	switch handoff := h.message.Handoff; {
	case err != nil || end.Former(delta): // it counts, so it had one
		return whenUnknown
	case end.Seq < h.message.Seq, own:
		return whenBefore
	case handoff == nil || end.Seq > handoff.Seq:
		return whenAfter
	}
	return whenUnknown
}

// seen reports whether the conditions have seen the value of a variable, and since when it has the value. The chat itself owns what it
// knows from its start.
func (e *explanation) seen(ctx context.Context, h *history, f *seenFact, ofChat bool) (seen bool, asOf string) {
	_, set := h.state.Written[f.Name]
	_, sent := e.snapshot[f.Name]
	switch {
	case !f.Exists && e.snapshot != nil:
		return false, "it does not exist: nothing has set it, and neither the snapshot nor the workflow has it"
	case !f.Exists:
		return false, "it does not exist: nothing has set it, and the workflow does not declare it; a snapshot of the producer may have had it"
	case ofChat:
		return true, "known from the start of the chat"
	case !set && sent:
		return true, "of the snapshot of the producer"
	case !set && slices.Contains(e.elsewhere, f.Name):
		return false, "the start value as it is here: the workers may have another environment or other files"
	case !set && e.snapshot != nil:
		return true, "the start value of the folder: nothing has set it"
	case !set:
		return true, "the start value of the folder, unless the producer has sent another: nothing has set it"
	case f.Record == 0:
		return true, "read by a tool"
	}
	w := h.when(ctx, f.Name, f.Record)
	switch l := h.message; {
	case w == whenBefore && f.Record == l.Seq:
		return true, "set by this message"
	case w == whenBefore && f.Record < l.Seq:
		return true, fmt.Sprintf("set by record %d, before this message", f.Record)
	case w == whenBefore:
		return true, fmt.Sprintf("set by record %d, before the handoff", f.Record)
	case w == whenUnknown:
		return false, fmt.Sprintf("of now: record %d has set it, perhaps after the handoff was decided", f.Record)
	}
	return false, fmt.Sprintf("of now: record %d has set it since", f.Record)
}
