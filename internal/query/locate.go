package query

// Which turn or question an id means is decided here. (A cancel may precede its turn; handlers/cancel.go searches with the
// same functions and prefers a turn that was claimed.) The id of a call is the turn key, or, for a turn with a run id or
// under a reused key, the turn key and a hash of the turn's token (events.CallID). Such a hash leads nowhere by itself, so
// an id is tried in this order, and each turn that is found is checked against the id:
//
//	Exact     the turn that the id and the run id lead to: nothing is searched for
//	Reused    the turns under the reused key: the records reused.<fingerprint> of the key name their data
//	Search    if the run id is not known, the records of the chat
//
// [Lister.Locate] does all three by the names of records.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Lister lists the names of the records that match a filter, in the order of the names, as
// [kvstore.Store.Names] does. It fails with [idempotency.ErrTooMany] beyond 10,000 of them. A nil Lister finds none.
type Lister func(ctx context.Context, filter string) ([]subjects.Record, error)

// Ref is the id of a call, or of a question in it, with what else is known of the turn.
type Ref struct {
	App, Chat string // tokens, or [idempotency.AnyToken]
	Run       string // run id of the turn, "" if it is not known
	Call      string // tool_call_id of the turn's call
	Step      string // token of the call in the turn, "" for the turn's own
	Ask       string // token of the id of a question in the call, or [idempotency.AnyToken]
}

// RefTo returns a reference by ids: tenant, chat and run of a turn, the tool_call_id of its call, and the id of a
// question in it.
func RefTo(of events.TurnID, call, ask string) *Ref {
	return &Ref{App: subjects.Token(of.App), Chat: subjects.Token(of.Chat), Run: of.Run, Call: call, Ask: subjects.Token(ask)}
}

// Refs returns the references that the id may mean: the call of a turn, or a step of a program. Turn keys may contain what
// separates the two, so there may be several; at most one has records.
func (r *Ref) Refs() []*Ref {
	all := []*Ref{r}
	for callID, call := range events.StepIDs(r.Call) {
		step := *r
		step.Call, step.Step = callID, subjects.CallOf(call)
		all = append(all, &step)
	}
	return all
}

// CallsIn returns the ids of the calls of turns that a tool_call_id may be or hold: of a call, a step or a question. Turn keys may
// contain what separates them, so there may be several; the whole id is the first.
func CallsIn(toolCallID string) []string {
	ids := []string{toolCallID}
	if call, _, ok := events.ParseQuestionID(toolCallID); ok {
		ids = append(ids, call)
	}
	for _, of := range slices.Clone(ids) {
		for call := range events.StepIDs(of) {
			ids = append(ids, call)
		}
	}
	return ids
}

// RefsIn returns the references that a tool_call_id may be or hold to a call with an id, which is one of [CallsIn]: to the call itself
// or to a step of it, and to a question if the id is of one.
func RefsIn(of events.TurnID, toolCallID, callID string) []*Ref {
	refs := RefTo(of, toolCallID, "").Refs()
	if call, ask, ok := events.ParseQuestionID(toolCallID); ok {
		refs = append(refs, RefTo(of, call, ask).Refs()...)
	}
	return slices.DeleteFunc(refs, func(r *Ref) bool { return r.Call != callID })
}

// Exact returns the key that the id leads to without a search, and the turn key in the id; ok is false if a turn under
// that key has another id. There may be no such turn.
func (r *Ref) Exact() (key subjects.Key, turn string, ok bool) {
	id := events.TurnID{Run: r.Run, Turn: events.TurnOfCallID(r.Call, r.Run)}
	key = r.key(id.Turn)
	return key, id.Turn, events.CallID(id, key.Turn) == r.Call // the id of a reused key names the same turn key and run
}

// key returns the plain key of a turn.
func (r *Ref) key(turn string) subjects.Key {
	return subjects.Key{App: r.App, Chat: r.Chat, Turn: subjects.TurnToken(r.Run, turn), Call: r.call()}
}

// call is the token of the call in the turn.
func (r *Ref) call() string { return cmp.Or(r.Step, subjects.SingleCall) }

// Qualified reports whether the id may belong to a turn with a run id or under a reused key, and returns the turn key
// in it.
func (r *Ref) Qualified() (turn string, ok bool) { return events.Unqualified(r.Call) }

// Questions is the filter for the question in some calls.
func (r *Ref) Questions(calls subjects.Key) string { return calls.Public(events.RecordAsk, r.Ask) }

// Claims is the filter for the claims of the turns of some calls. The tool_call of a step claims nothing.
func Claims(calls subjects.Key) string { return calls.OfTurn().Public(events.RecordCall) }

// Locate returns the names of the records that are meant, by the names of records alone; filter makes the filter for
// some calls. There is one at most, unless turn keys were chosen that look like turn keys with a run id, or the chat is
// any. Where the id leads to the turn, nothing else is listed. It fails with [idempotency.ErrTooMany] where that leaves
// over 10,000 records to check.
func (list Lister) Locate(ctx context.Context, r *Ref, filter func(calls subjects.Key) string) ([]subjects.Record, error) {
	var found []subjects.Record
	for _, ref := range r.Refs() {
		more, err := list.locate(ctx, ref, filter)
		if err != nil {
			return found, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (list Lister) locate(ctx context.Context, r *Ref, filter func(calls subjects.Key) string) ([]subjects.Record, error) {
	exact, err := list.exact(ctx, r, filter)
	if err != nil || len(exact) > 0 && r.Chat != idempotency.AnyToken {
		return exact, err
	}
	if r.Chat != idempotency.AnyToken {
		reused, err := list.Reused(ctx, r)
		for _, key := range reused {
			if found, err := list(ctx, filter(key)); err != nil || len(found) > 0 {
				return found, err
			}
		}
		if err != nil || r.Run != "" {
			return nil, err
		}
	}
	more, err := list.Search(ctx, r, filter)
	return append(exact, more...), err
}

func (list Lister) exact(ctx context.Context, r *Ref, filter func(calls subjects.Key) string) ([]subjects.Record, error) {
	key, _, ok := r.Exact()
	if !ok {
		return nil, nil
	}
	return list(ctx, filter(key))
}

// Reused returns the calls under the reused key that have the id, none for an id that is not qualified.
func (list Lister) Reused(ctx context.Context, r *Ref) ([]subjects.Key, error) {
	turn, ok := r.Qualified()
	if !ok || list == nil {
		return nil, nil
	}
	key := r.key(turn)
	notes, err := list(ctx, key.ReuseNotes())
	if err != nil {
		return nil, err
	}
	var found []subjects.Key
	for _, note := range notes {
		if key := key.Reuse(r.Run, turn, note.ID); events.QualifiedCallID(turn, key.Turn) == r.Call {
			found = append(found, key)
		}
	}
	return found, nil
}

// Search returns the records of the chat whose calls have the id, none for an id that is not qualified.
func (list Lister) Search(ctx context.Context, r *Ref, filter func(calls subjects.Key) string) ([]subjects.Record, error) {
	turn, ok := r.Qualified()
	if !ok || list == nil {
		return nil, nil
	}
	all, err := list(ctx, filter(subjects.Key{App: r.App, Chat: r.Chat, Turn: idempotency.AnyToken, Call: r.call()}))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(name subjects.Record) bool {
		return events.QualifiedCallID(turn, name.Turn) != r.Call
	}), nil
}

// Asking returns the calls of the chat that have the id and have asked the question.
func (list Lister) Asking(ctx context.Context, r *Ref) ([]subjects.Key, error) {
	return keysOf(list.Search(ctx, r, r.Questions))
}

// Called returns the calls of the chat that have the id and were called: calls of turns, or steps of programs.
func (list Lister) Called(ctx context.Context, r *Ref) ([]subjects.Key, error) {
	return keysOf(list.Search(ctx, r, func(calls subjects.Key) string { return calls.Public(events.RecordCall) }))
}

// Claimed returns the calls of the chat that have the id and were claimed.
func (list Lister) Claimed(ctx context.Context, r *Ref) ([]subjects.Key, error) {
	return keysOf(list.Search(ctx, r, Claims))
}

func keysOf(names []subjects.Record, err error) ([]subjects.Key, error) {
	keys := make([]subjects.Key, 0, len(names))
	for _, name := range names {
		keys = append(keys, name.Key)
	}
	return keys, err
}

// OpenCall returns the claim of the turn whose call is meant, if the turn has no response yet, or
// [idempotency.ErrNotFound]: a worker has entered the tool of the call, or may. Only a program has steps, and a step that has
// ended is entered no more. It fails as [Lister.Locate] does.
func OpenCall(ctx context.Context, store idempotency.Store, list Lister, r *Ref) (idempotency.Record, error) {
	for _, ref := range r.Refs() {
		claim, err := openCall(ctx, store, list, ref)
		if !errors.Is(err, idempotency.ErrNotFound) {
			return claim, err
		}
	}
	return idempotency.Record{}, idempotency.ErrNotFound
}

func openCall(ctx context.Context, store idempotency.Store, list Lister, r *Ref) (idempotency.Record, error) {
	names, err := list.locate(ctx, r, Claims)
	if err != nil {
		return idempotency.Record{}, err
	}
	const most = 16 // there is one, unless turn keys were chosen to look alike
	for _, name := range names[:min(len(names), most)] {
		t, err := idempotency.LoadEnds(ctx, store, name.Key)
		if err != nil {
			return idempotency.Record{}, err
		}
		if t.Claim == nil || t.Claim.Err != nil || t.Claim.Meta.Outcome != "" || t.Response != nil {
			continue
		}
		if r.Step == "" {
			return *t.Claim, nil
		}
		if t.Claim.Meta.Effect != string(events.EffectProgram) {
			continue
		}
		step, err := store.LastOf(ctx, []string{name.Key.WithCall(r.Step).Public(events.RecordResponse)})
		if err != nil {
			return idempotency.Record{}, err
		}
		if step[0] == nil || step[0].Former(t.Claim.Seq) {
			return *t.Claim, nil
		}
	}
	return idempotency.Record{}, idempotency.ErrNotFound
}

// Reuses returns the keys of the turns that ran under a key, run id and turn key though it was used before with other
// data, as the leader knows them. It fails with [idempotency.ErrTooMany] if there are more than most.
func Reuses(ctx context.Context, store idempotency.Store, list Lister, key subjects.Key, run, turn string, most int) ([]subjects.Key, error) {
	notes, err := list(ctx, key.ReuseNotes())
	if err != nil {
		return nil, err
	}
	reuses := make([]subjects.Key, 0, min(len(notes), most))
	for _, note := range notes {
		switch r, err := store.Last(ctx, note.Name()); {
		case errors.Is(err, idempotency.ErrNotFound): // it has just expired
		case err != nil:
			return nil, err
		case r.Meta.Outcome == idempotency.OutcomePlainKey:
		case len(reuses) == most:
			return nil, fmt.Errorf("journal: more than %d turns under turn key %.80q: %w", most, turn, idempotency.ErrTooMany)
		default:
			reuses = append(reuses, key.Reuse(run, turn, note.ID))
		}
	}
	return reuses, nil
}
