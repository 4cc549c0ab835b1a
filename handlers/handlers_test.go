package handlers_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// F23: see docs/faults.md.
func TestDeliveryThatIsNotFreshClaimsNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	m := k.message(1, 1)
	m.Fresh = func() bool { return false }
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
	_, err := k.store.At(t.Context(), 1)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}

func TestToolOfATakeoverGetsTheSameIdentityAndAHigherFencingToken(t *testing.T) {
	t.Parallel()
	var call tools.Call
	k := newKit(t, toolFunc(func(_ context.Context, c *tools.Call) (tools.Result, error) {
		call = *c
		return tools.Result{}, nil
	}))
	m := k.message(1, 1)
	body, err := events.DecodeTurn(m.Data)
	require.NoError(t, err)
	fingerprint := events.Fingerprint(body)
	dead, err := idempotency.New(k.store, "dead worker", idempotency.Options{}).Claim(t.Context(), idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "turn"), Lease: m.Lease, Effect: "idempotent",
		Fingerprint: hex.EncodeToString(fingerprint[:]), Event: k.claimEvent(),
	})
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, dead.Action)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 2)).Do)
	require.Equal(t, 2, call.Epoch)
	require.Greater(t, call.FencingToken, dead.Hold.Token)
	require.Equal(t, events.IdempotencyKey(body.TurnID, "turn"), call.IdempotencyKey)
	require.Equal(t, "turn", call.CallID)
	require.True(t, k.response().Success)
}

func TestResultOfARunThatLostItsLeaseIsStoredWhenItIsTheFirst(t *testing.T) {
	t.Parallel()
	held, lose := context.WithCancel(t.Context())
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		lose()
		return tools.Result{}, nil
	}))
	m := k.message(1, 1)
	m.Held = held
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	require.True(t, k.response().Success)
}

// silentSet is a workflow that asks for silence, and whose one model no turn of the kit fits.
func silentSet(t *testing.T) *bindings.Set {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "WF"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "WF", "oneturn.yaml"), []byte(`compat: {silent: true}
on_key_reuse: run
models: {M: {type: object, required: [name], properties: {name: {type: string}}}}
agents: {A: {model: M}}
tools: [{name: t, agent: A, kind: go}]
`), 0o600))
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root})
	require.NoError(t, err)
	require.Empty(t, set.Diagnostics())
	return set
}

// TestSilentTurnThatWasNeverClaimedStaysSilentWhenItIsRedelivered: the worker that had it first
// may not have known its workflow.
func TestSilentTurnThatWasNeverClaimedStaysSilentWhenItIsRedelivered(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	set := silentSet(t)
	k.Bindings = func() *bindings.Set { return set }
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 2)).Do)
	_, err := k.store.At(t.Context(), 1)
	require.ErrorIs(t, err, idempotency.ErrNotFound)
}

func TestSilentTurnThatWasClaimedIsEnded(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	set := silentSet(t)
	k.Bindings = func() *bindings.Set { return set }
	m := k.message(1, 1)
	body, err := events.DecodeTurn(m.Data)
	require.NoError(t, err)
	fingerprint := events.Fingerprint(body)
	_, err = idempotency.New(k.store, "dead worker", idempotency.Options{}).Claim(t.Context(), idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "turn"), Lease: m.Lease, Effect: "idempotent",
		Fingerprint: hex.EncodeToString(fingerprint[:]), Event: k.claimEvent(),
	})
	require.NoError(t, err)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 2)).Do)
	require.Equal(t, events.CodeInterrupted, k.response().Code)
}

// F22: see docs/faults.md.
func TestMessageThatNoWorkerCouldClaimEndsAsDeadLetterAndRejectedTurn(t *testing.T) {
	t.Parallel()
	entered := false
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered = true
		return tools.Result{}, nil
	}))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 60)).Do)
	require.False(t, entered)
	r := k.response()
	require.Equal(t, events.CodeInterrupted, r.Code)
	require.Contains(t, r.Content, "delivered 60 times")
	info, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.Equal(t, uint64(1), info.CachedInfo().State.Msgs)
}

// F22: see docs/faults.md.
func TestPanicOfAToolIsItsOutcome(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) { panic("oh") }))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.Equal(t, events.CodeToolError, k.response().Code)
}

// F22: see docs/faults.md.
func TestPanicOfAHandlerLeavesTheMessage(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	m := k.message(1, 1)
	m.Fresh = func() bool { panic("broken") }
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
}

func TestResultNestedTooDeepIsAnErrorOutcomeNotAnEndlessTurn(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 80) + strings.Repeat("]", 80)
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(deep)}, nil
	}))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.False(t, k.response().Success)
}

func TestResultThatNoEventCanHoldIsNamedByItsPlaceAndKind(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(`{"rates":[1,1e-320]}`)}, nil
	}))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.Equal(t, events.CodeToolError, k.response().Code)
	require.Equal(t, `Tool t has run, but no event can hold its result at "/rates/1": exponent over 308: send the number as a string.`, k.response().Content)
}

// C17: another program has written what should be the response of a turn.
func TestTurnWhoseResponseCannotBeReadEndsAsDeadLetter(t *testing.T) {
	t.Parallel()
	ran := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		ran++
		return tools.Result{}, nil
	}))
	end := subjects.TurnKey("app", "chat", "", "turn").Public("tool_response")
	_, err := k.store.Create(t.Context(), idempotency.Record{Key: end, Data: []byte("not ours"), Err: errors.New("no owner")})
	require.NoError(t, err)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.LessOrEqual(t, ran, 1)
	was := ran
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 2)).Do)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(2, 1)).Do)
	require.Equal(t, was, ran, "its tool is entered again")
	dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.EqualValues(t, 2, dead.CachedInfo().State.Msgs)
	letter, err := dead.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "state_corrupt", letter.Header.Get(deadletter.HeaderReason))
}

func TestContextChangesMergeOnceInTheOrderOfTheJournal(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	v, ctx := k.Variables, t.Context()
	set := func(seq uint64, name, value string) {
		require.NoError(t, v.Merge(ctx, "app", "chat", seq, variables.Delta{Set: map[string]any{name: value}}))
	}
	set(10, "a", "ten")
	set(12, "a", "twelve")
	set(11, "a", "eleven, late")
	set(12, "a", "twelve again")
	require.NoError(t, v.Merge(ctx, "app", "chat", 20, variables.Delta{Remove: []string{"b"}}))
	set(19, "b", "set before it was removed")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := strconv.Itoa(i)
			if err := v.Merge(ctx, "app", "chat", uint64(30+i), variables.Delta{Set: map[string]any{name: name}}); err != nil {
				t.Errorf("merge: %v", err)
			}
		})
	}
	wg.Wait()
	got, err := v.Load(ctx, "app", "chat", variables.Layers{})
	require.NoError(t, err)
	want := map[string]any{"a": "twelve"}
	for i := range 8 {
		want[strconv.Itoa(i)] = strconv.Itoa(i)
	}
	require.Equal(t, want, got)
}

func TestSnapshotAndStoredVariablesAreMergedByTheLastChange(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	v, ctx := k.Variables, t.Context()
	digest := func(value any) string { // as a delta of a turn with this snapshot has it
		data, err := events.AppendJSON(nil, value)
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:8])
	}
	load := func(snapshot map[string]any) map[string]any {
		before := maps.Clone(snapshot)
		got, err := v.Load(ctx, "app", "chat", variables.Layers{Snapshot: snapshot})
		require.NoError(t, err)
		require.Equal(t, before, snapshot, "the snapshot of the event is not modified")
		return got
	}
	require.Equal(t, map[string]any{"plan": "first", "none": nil}, load(map[string]any{"plan": "first", "none": nil}), "nothing is stored")
	require.NoError(t, v.Merge(ctx, "app", "chat", 10, variables.Delta{
		Set: map[string]any{"plan": "tool", "new": "tool", "none": "tool"}, Remove: []string{"draft"},
		Base: map[string]string{"plan": digest("first"), "new": "", "none": "", "draft": digest("d")},
	}))
	stored := map[string]any{"plan": "tool", "new": "tool", "none": "tool"}
	require.Equal(t, stored, load(nil))
	require.Equal(t, stored, load(map[string]any{}))
	require.Equal(t, stored, load(map[string]any{"plan": "first", "none": nil, "draft": "d"}), "the producer repeats what it had")
	require.Equal(t, map[string]any{"plan": "mine", "new": "mine", "none": "tool", "draft": "e"}, load(map[string]any{"plan": "mine", "new": "mine", "draft": "e"}), "the producer has changed them since")
	require.Equal(t, map[string]any{"plan": nil, "new": "tool", "none": "tool"}, load(map[string]any{"plan": nil}), "the producer has emptied it since")

	require.NoError(t, v.Merge(ctx, "app", "chat", 11, variables.Delta{Set: map[string]any{"plan": "tool again"}}))
	require.Equal(t, "tool again", load(map[string]any{"plan": "first"})["plan"], "a turn without snapshot has no value of the producer")
	require.NoError(t, v.Merge(ctx, "app", "chat", 12, variables.Delta{Set: map[string]any{"plan": "x"}, Base: map[string]string{"plan": digest("mine")}}))
	require.Equal(t, "first", load(map[string]any{"plan": "first"})["plan"])
	require.Equal(t, "x", load(map[string]any{"plan": "mine"})["plan"])
}

func TestSameDeadLetterIsStoredOnce(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	m := k.message(7, 1)
	m.Data = []byte("broken")
	for range 3 {
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	}
	info, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.Equal(t, uint64(1), info.CachedInfo().State.Msgs)
}

func TestContextVariablesThatAreTooLargeEndTheTurnAsTooLarge(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 600<<10)
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Set: map[string]any{"x": huge}}, nil
	}))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.Equal(t, events.CodeTooLarge, k.response().Code)
}
