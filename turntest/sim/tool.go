package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tools"
)

// entry is one run of a tool in the ledger, which no fault can touch.
type entry struct {
	turn   string // turn key
	data   string
	epoch  int
	token  uint64
	key    string // idempotency key
	nonce  string // of the run, if its tool asks
	result string // "" while it runs: "ok", "user_error" or "stopped"
}

// tool is the tool of all agents: it takes a few steps, and then returns, fails, or stops
// because its context has ended (some do not care).
type tool struct{ w *world }

// Invoke implements [tools.Invoker].
func (l tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	t, w := threadOf(ctx), l.w
	t.yield("enter")
	e := &entry{
		turn: call.Turn.Turn, data: fmt.Sprint(call.Args["v"]), epoch: call.Epoch, token: call.FencingToken, key: call.IdempotencyKey,
	}
	run := len(w.ledger)
	w.ledger = append(w.ledger, e)
	w.tracef("  %s: tool of %s entered, epoch %d, run %d", t.p.name, e.turn, e.epoch, run)
	obeys := w.chance(3, 4)
	for range w.rng.IntN(6) {
		t.yield("in the tool")
		if ctx.Err() != nil && obeys {
			e.result = "stopped"
			return tools.Result{}, context.Cause(ctx)
		}
	}
	if w.chance(1, 8) {
		e.result = string(events.CodeUserError)
		return tools.Result{}, &events.Error{Code: events.CodeUserError, Msg: "no"}
	}
	e.result = events.StatusOK
	r := tools.Result{Value: json.RawMessage(fmt.Sprintf(`{"run":%d}`, run))}
	if w.chance(1, 4) {
		r.Set = map[string]any{"run": json.Number(strconv.Itoa(run))}
	}
	return r, nil
}

// variables is the simulated store of context variables. It remembers which deltas arrived.
type variables struct{ w *world }

// Load implements [handlers.ContextStore].
func (variables) Load(context.Context, string, string) (map[string]any, error) {
	return map[string]any{}, nil
}

// Merge implements [handlers.ContextStore].
func (v variables) Merge(ctx context.Context, _, _ string, seq uint64, _ handlers.Delta) error {
	t := threadOf(ctx)
	t.yield("merge")
	if v.w.strike(FailedMerge, 3) {
		v.w.hit(t.lease)
		return errNoAnswer
	}
	v.w.merged[seq] = true
	return nil
}

// blobs is the simulated store of large payloads. Nothing here is large.
type blobs struct{}

// Inline implements [handlers.BlobStore].
func (blobs) Inline(int) bool { return true }

// Shrink implements [handlers.BlobStore].
func (blobs) Shrink(_ context.Context, _ subjects.Key, _ string, value any, _ []byte) (any, error) {
	return value, nil
}

// Object implements [handlers.BlobStore].
func (blobs) Object(_ context.Context, _ subjects.Key, _ string, stored any) (map[string]any, error) {
	args, _ := stored.(map[string]any)
	return args, nil
}

// letters is the simulated store of dead letters.
type letters struct{ w *world }

var errNoLetter = errors.New("simulated: the dead letter is not stored")

// Put implements [handlers.Letters].
func (l letters) Put(ctx context.Context, m *handlers.Message, _, reason string, _ error) error {
	threadOf(ctx).yield("dead letter")
	if l.w.strike(LostDead, 3) {
		return errNoLetter
	}
	l.w.letters[m.Lease.Seq] = reason
	return nil
}
