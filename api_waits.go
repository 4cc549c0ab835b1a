package oneturn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// WaitsRequest asks for the questions of the subject's tenant that wait for an answer.
type WaitsRequest struct {
	App  string `json:"-"`                 // for [Client.Waits]; others name the tenant in the subject
	Chat string `json:"chat_id,omitempty"` // of one chat, of the tenant's if empty
	// ToolCallID names one question of the chat: it is returned in whatever state it is, also before it
	// is asked if its turn runs.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// Run is the run id of the turn of that question, if it is known: with it the id of the question
	// leads to its turn. Without it the chat is searched for a turn with a run id.
	Run  string `json:"run_id,omitempty"`
	From uint64 `json:"from,omitempty"` // Next of the page before, 0 = the beginning
}

// Waits is the answer: questions in the order in which they were asked.
type Waits struct {
	Waits []Wait `json:"waits"`
	// Next is From of the next page, 0 when there is none now. It is a sequence of the journal for
	// a chat, and one of the timers for a tenant.
	Next uint64 `json:"next,omitempty"`
}

// Wait is a question to a person.
type Wait struct {
	Sequence    uint64    `json:"sequence"` // of the question in the journal
	State       WaitState `json:"state"`
	ToolCallID  string    `json:"tool_call_id"`
	App         string    `json:"app_id"`
	Chat        string    `json:"chat_id"`
	Run         string    `json:"run_id,omitempty"`
	Turn        string    `json:"turn"`
	Workflow    string    `json:"workflow_name"`
	Agent       string    `json:"agent"`
	Tool        string    `json:"tool_name"`
	Interaction string    `json:"interaction_type"`
	Component   string    `json:"component_type"`
	Display     string    `json:"display,omitempty"`
	User        string    `json:"user_id,omitempty"` // who alone may answer, "" for everybody in the chat
	Secret      bool      `json:"secret"`            // the answer is: show no echo of it
	AskedAt     time.Time `json:"asked_at"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"` // end of the time to answer
	Subject     string    `json:"answer_subject"`      // to publish the answer to

	// Schema that an answer has to fit, and what is shown, with the questions of a chat only. A
	// payload of over 64 KiB is left out: the history has it.
	Schema       json.RawMessage `json:"schema,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"`
	PayloadBytes int             `json:"payload_bytes,omitempty"`
}

// WaitState is what became of a question.
type WaitState string

// The states of a question.
const (
	// WaitNotAsked is that of a named question that its turn, which runs, has not asked yet and may never
	// ask. Nothing is known of it but its turn and where to publish an answer to.
	WaitNotAsked WaitState = "not_asked"

	WaitOpen      WaitState = "open"
	WaitAnswered  WaitState = "answered"
	WaitExpired   WaitState = "expired"
	WaitCancelled WaitState = "cancelled" // its turn was
	WaitClosed    WaitState = "closed"    // its turn ended with the question open
)

// maxWaitPayload bounds the payload of one question in an answer, in bytes.
const maxWaitPayload = 64 << 10

// waits reads a page of questions, 16 at most: those that are decided are read as well.
func (a *api) waits(ctx context.Context, app string, body []byte) (any, error) {
	var q WaitsRequest
	if err := json.Unmarshal(body, &q); err != nil || q.ToolCallID != "" && q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…"?,"tool_call_id":"…"?,"run_id":"…"?,"from":0}, and the chat of a question that is named`, errBadRequest)
	}
	found := &Waits{Waits: []Wait{}}
	if q.ToolCallID != "" {
		w, err := a.question(ctx, app, q.Chat, q.Run, q.ToolCallID)
		if w != nil {
			found.Waits = append(found.Waits, *w)
		}
		return found, err
	}
	page := &asking{Waits: found, api: a, whole: q.Chat != ""}
	var err error
	if q.Chat == "" {
		err = a.waitsOfTenant(ctx, app, q.From, page)
	} else {
		err = a.each(ctx, app, subjects.QuestionsOfChat(app, q.Chat), q.From, func(r *idempotency.Record, more bool) (bool, error) {
			return page.add(ctx, r, r.Seq, more)
		})
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// waitsOfTenant looks for questions among the timers that end them: every question has one until
// its time is over. To look for records of one kind in all chats, the server would go through the
// names of all turns, a quarter of a second for 200,000, and store nothing meanwhile.
func (a *api) waitsOfTenant(ctx context.Context, app string, from uint64, page *asking) error {
	filter := a.space.AskTimersOfTenant(app)
	places, err := a.timers.order.FromWithin(ctx, a.searches.within(ctx, app), filter, from)
	if errors.Is(err, idempotency.ErrTooMany) {
		return a.searchTimers(ctx, app, filter, from, page)
	}
	if err != nil {
		return err
	}
	for _, place := range places {
		if on, err := a.waitOf(ctx, place.Subject, place.Seq, page); err != nil || !on {
			return err
		}
	}
	return nil
}

// searchTimers is for tenants that have too many questions for the index. The server goes through
// the timers of all tenants, hence the budget. The last one is looked up first: the search for one
// more would go through them to their end.
func (a *api) searchTimers(ctx context.Context, app, filter string, from uint64, page *asking) error {
	search := a.searches.within(ctx, app)
	var last uint64
	err := search(func() (err error) {
		last, err = a.timers.Sequence(ctx, filter)
		return err
	})
	for on := true; on && err == nil && from <= last; from++ {
		var subject string
		err = search(func() (err error) {
			subject, from, err = a.timers.next(ctx, filter, from)
			return err
		})
		if err == nil {
			on, err = a.waitOf(ctx, subject, from, page)
		}
	}
	if errors.Is(err, idempotency.ErrNotFound) {
		return nil // it has just ended
	}
	return err
}

// waitOf reads the question of a timer that was found at a sequence.
func (a *api) waitOf(ctx context.Context, timer string, at uint64, page *asking) (on bool, err error) {
	key, ask, ok := a.space.ParseAskTimer(timer)
	if !ok {
		return true, nil
	}
	r, err := a.store.Last(ctx, key.Public(events.RecordAsk, ask))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return page.full(at, true), nil
	case err != nil:
		return false, err
	}
	return page.add(ctx, &r, at, true)
}

// asking is a page of questions that is being filled.
type asking struct {
	*Waits

	api         *api
	whole       bool // with what is shown
	reads, size int
}

// add takes a question that is open, and reports whether the page takes another one. At is where
// the question was found, and more whether there may be others behind it.
func (p *asking) add(ctx context.Context, r *idempotency.Record, at uint64, more bool) (bool, error) {
	w := readWait(r, p.whole)
	if w == nil {
		return p.full(at, more), nil
	}
	var err error
	if w.State, err = p.api.stateOf(ctx, r); err != nil {
		return false, err
	}
	if w.State == WaitOpen {
		if p.size += len(encode(w)); p.size > min(pageBytes, p.api.most) && len(p.Waits.Waits) > 0 {
			p.Next = at
			return false, nil
		}
		p.Waits.Waits = append(p.Waits.Waits, *w)
	}
	return p.full(at, more), nil
}

// full counts a record that was read, and reports whether the page takes another one.
func (p *asking) full(at uint64, more bool) bool {
	if p.reads++; more && p.reads == pageRecords {
		p.Next = at + 1
		return false
	}
	return true
}

// errTooManyTurns refuses to look for a question in a chat that has too many.
var errTooManyTurns = fmt.Errorf("%w: the chat has too many turns to look for the question: name the run_id of its turn, or read the history", errBadRequest)

// question reads one question of a chat, whatever became of it; nil if there is none. Run may be "".
func (a *api) question(ctx context.Context, app, chat, run, id string) (*Wait, error) {
	call, ask, ok := events.ParseQuestionID(id)
	if !ok {
		return nil, nil //nolint:nilnil // no question has such an id
	}
	ref := idempotency.QuestionRef{App: app, Chat: subjects.Token(chat), Run: run, Call: call, Ask: subjects.Token(ask)}
	names, err := a.searches.names(app).FindQuestions(ctx, ref)
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, errTooManyTurns
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names[:min(len(names), pageRecords)] {
		r, err := a.store.Last(ctx, name.Name())
		if errors.Is(err, idempotency.ErrNotFound) {
			continue // it has just expired
		}
		if err != nil {
			return nil, err
		}
		w := readWait(&r, true)
		if w == nil || w.ToolCallID != id {
			continue
		}
		w.State, err = a.stateOf(ctx, &r)
		return w, err
	}
	return a.unasked(ctx, ref, id)
}

// unasked is a question that a call which runs may come to ask, nil if there is no such call.
func (a *api) unasked(ctx context.Context, ref idempotency.QuestionRef, id string) (*Wait, error) {
	r, err := a.store.FindOpenCall(ctx, a.searches.names(ref.App), ref)
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return nil, nil //nolint:nilnil // there is none
	case errors.Is(err, idempotency.ErrTooMany):
		return nil, errTooManyTurns
	case err != nil:
		return nil, err
	}
	var e events.ToolCall
	if m, err := events.Parse(r.Data); err != nil || m.As(&e) != nil || e.ToolCallID != ref.Call {
		return nil, nil //nolint:nilnil,nilerr // a damaged one asks nothing
	}
	return &Wait{
		State: WaitNotAsked, ToolCallID: id, App: e.AppID, Chat: e.ChatID, Run: e.RunID, Turn: e.Turn, Workflow: e.WorkflowName, Agent: e.Agent, User: e.UserID,
		Subject: a.space.In(cmp.Or(r.Meta.Pool, subjects.DefaultPool), events.KindToolCallResponse, e.AppID, e.WorkflowName, e.ChatID),
	}, nil
}

// readWait reads the record of a question, nil if it is damaged: turnctl shows such ones.
func readWait(r *idempotency.Record, whole bool) *Wait {
	if r.Damaged() {
		return nil
	}
	m, err := events.Parse(r.Data)
	if err != nil || m.Kind != events.KindToolCall {
		return nil
	}
	var e events.ToolCall
	if m.As(&e) != nil || e.Answer == nil {
		return nil
	}
	w := &Wait{
		Sequence: r.Seq, ToolCallID: e.ToolCallID, App: e.AppID, Chat: e.ChatID, Run: e.RunID, Turn: e.Turn,
		Workflow: e.WorkflowName, Agent: e.Agent, Tool: e.ToolName, Interaction: e.InteractionType, Display: e.Display,
		User: e.UserID, Secret: e.Secret, AskedAt: r.Time.UTC(), ExpiresAt: e.Answer.ExpiresAt, Subject: e.Answer.Subject,
	}
	if e.ComponentType != nil {
		w.Component = *e.ComponentType
	}
	if !whole {
		return w
	}
	if e.Answer.Schema != nil {
		w.Schema, _ = events.AppendJSON(nil, e.Answer.Schema) // it was JSON
	}
	w.Payload, _ = events.AppendJSON(nil, m.Data["payload"])
	if w.PayloadBytes = len(w.Payload); w.PayloadBytes > maxWaitPayload {
		w.Payload = nil
	}
	return w
}

// stateOf tells what became of a question by the records that may have ended it, which are read by
// their names: one may be left of a former life of the key, older than the question.
func (a *api) stateOf(ctx context.Context, r *idempotency.Record) (WaitState, error) {
	ask, ok := subjects.ParseKey(r.Key)
	if !ok {
		return WaitClosed, nil
	}
	end := ask.Public(events.KindToolResponse)
	found, err := a.store.Lasts(ctx, []string{ask.Public(events.RecordAck, ask.ID), ask.Key.Private(events.RecordAnswer, ask.ID), end, ask.Public(events.RecordCancel)})
	if err != nil {
		return "", err
	}
	for _, decided := range found[:3] {
		switch {
		case decided == nil || decided.Former(r.Seq):
		case decided.Key == end:
			return WaitClosed, nil
		default:
			return outcome(decided), nil
		}
	}
	if found[3] == nil {
		return WaitOpen, nil
	}
	t, err := idempotency.LoadEnds(ctx, a.store, ask.Key)
	if err != nil || t.Cancel == nil {
		return WaitOpen, err
	}
	return WaitCancelled, nil
}

// outcome is how a question was decided, by its ack or answer.
func outcome(decided *idempotency.Record) WaitState {
	switch idempotency.Outcome(decided.Meta.Verdict) {
	case idempotency.Expired:
		return WaitExpired
	case idempotency.Cancelled:
		return WaitCancelled
	case idempotency.Answered, idempotency.Open:
	}
	return WaitAnswered
}

// eventID returns the tool_call_id of an event, "" if it has none.
func eventID(event []byte) string {
	m, err := events.Parse(event)
	if err != nil {
		return ""
	}
	id, _ := m.Data["tool_call_id"].(string)
	return id
}
