package sim

import (
	"encoding/json"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// What the journal holds of a turn and of the calls of its program: what the checks compare with the ledger.

// history is all that the journal holds of a turn.
type history struct {
	claim     *idempotency.Record
	cancel    *idempotency.Record
	takeovers []*idempotency.Record
	deltas    []*idempotency.Record
	parks     map[int]*idempotency.Record // by epoch
	questions map[string]*question        // by id
	responses []response
	calls     map[string]*called // of a program, by id
	program   *idempotency.Record
	newest    idempotency.Lease // lease of the newest epoch
}

// called is all that the journal holds of a call of a program.
type called struct {
	call, program *idempotency.Record
	response      *response
}

// of returns a call of a program as if it were a turn.
func (h *history) of(call string) *history {
	if call == "" {
		return h
	}
	of := *h
	of.claim, of.questions = nil, map[string]*question{}
	if c := h.calls[call]; c != nil {
		of.claim = c.call
	}
	for id, q := range h.questions {
		if asker, name := cutAskID(id); asker == call {
			of.questions[name] = q
		}
	}
	return &of
}

type response struct {
	*idempotency.Record `json:"-"`

	Body struct {
		Success bool            `json:"success"`
		Status  string          `json:"status"`
		Code    string          `json:"code"`
		Keys    []string        `json:"context_keys"`
		Payload json.RawMessage `json:"payload"`
		// Correcting is set if the turn of a correction has to follow.
		Correcting bool `json:"correcting"`
	} `json:"data"`
}

func (r *response) code() string {
	if r.Body.Code == "" {
		return r.Body.Status
	}
	return r.Body.Code
}

// history is what the journal holds of a turn.
func (w *world) history(t *turn) history { return w.historyUntil(t, len(w.store.log)) }

// historyUntil is the turn as the first n records of the journal show it.
func (w *world) historyUntil(t *turn, records int) history {
	h := history{parks: map[int]*idempotency.Record{}, questions: map[string]*question{}, calls: map[string]*called{}}
	if t.absent {
		return h
	}
	question := func(id string) *question {
		if h.questions[id] == nil {
			h.questions[id] = &question{}
		}
		return h.questions[id]
	}
	for i := range w.store.log[:records] {
		r := &w.store.log[i]
		k, ok := subjects.ParseKey(r.Key)
		if !ok || k.Chat != t.key.Chat || k.Turn != t.key.Turn || !t.had(r.Seq) {
			continue
		}
		if c := t.callOf(k.Call); c != nil && k.Kind != "delta" {
			if h.calls[c.id] == nil {
				h.calls[c.id] = &called{}
			}
			if h.calls[c.id].note(w, k.Kind, r) {
				continue
			}
			k.ID = askID(c.id, k.ID)
		}
		switch k.Kind {
		case events.RecordProgram:
			h.program = r
		case events.KindToolCall:
			if h.claim == nil {
				h.claim, h.newest = r, r.Meta.Lease
			}
		case events.KindCancel:
			h.cancel = r
		case "takeover":
			h.takeovers = append(h.takeovers, r)
			h.newest = r.Meta.Lease
		case "park":
			h.parks[r.Meta.Epoch] = r
		case events.RecordAsk:
			question(k.ID).ask = r
		case "answer":
			question(k.ID).answer = r
		case "taken":
			question(k.ID).taken = r
		case "ack":
			question(k.ID).ack = r
		case "delta":
			h.deltas = append(h.deltas, r)
		case events.KindToolResponse:
			h.responses = append(h.responses, w.response(r))
		}
	}
	return h
}

func (w *world) response(r *idempotency.Record) response {
	a := response{Record: r}
	if err := json.Unmarshal(r.Data, &a); err != nil {
		w.violatef("response %d cannot be read: %v", r.Seq, err)
	}
	return a
}

// note adds a record of the call, and reports whether it is one of the call alone.
func (c *called) note(w *world, kind string, r *idempotency.Record) bool {
	switch kind {
	case events.KindToolCall: // a question has another kind
		c.call = r
	case events.RecordProgram:
		c.program = r
	case events.KindToolResponse:
		a := w.response(r)
		c.response = &a
	default:
		return false
	}
	return true
}
