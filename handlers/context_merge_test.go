package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

func (k *kit) loaded() map[string]any {
	k.t.Helper()
	vars, err := k.Variables.Load(k.t.Context(), "app", "chat", variables.Layers{})
	require.NoError(k.t, err)
	return vars
}

func setsPlan(value string) tools.Invoker {
	return returns(tools.Result{Value: json.RawMessage(`7`), Set: map[string]any{"plan": value}, Remove: []string{"draft"}})
}

func TestContextChangesOfARunThatLostItsTurnAreNotMerged(t *testing.T) {
	t.Parallel()
	var k *kit
	k = newKit(t, toolFunc(func(ctx context.Context, c *tools.Call) (tools.Result, error) {
		if c.Epoch == 1 { // stands still past its lease, and the next owner ends the turn
			require.Equal(k.t, inbound.Ack, handlers.New(k.Config).Handle(context.WithoutCancel(ctx), k.message(1, 2)).Do)
		}
		return tools.Result{Set: map[string]any{"plan": json.Number(string(rune('0' + c.Epoch))), "by": "all"}}, nil
	}))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.Equal(t, map[string]any{"plan": json.Number("2"), "by": "all"}, k.loaded())
	kv, key := k.document()
	entry, err := kv.Get(t.Context(), key)
	require.NoError(t, err)
	require.NotContains(t, string(entry.Value()), "staged", "what was read does not count, and is dropped")
}

// interruptedMerge is a worker that dies after the response is stored, before it can merge.
type interruptedMerge struct{ variables.Store }

func (interruptedMerge) Merge(context.Context, string, string, uint64, variables.Delta) error {
	return errors.New("the worker dies")
}

// diesBeforeMerge has another worker handle the turn up to its response.
func (k *kit) diesBeforeMerge() {
	k.t.Helper()
	config := k.Config
	config.Variables = interruptedMerge{k.Variables}
	worker := handlers.New(config)
	for range 2 { // nor is the turn one that has certainly finished
		require.Equal(k.t, inbound.Leave, worker.Handle(k.t.Context(), k.message(1, 1)).Do)
	}
	require.Equal(k.t, []string{"draft", "plan"}, k.response().ContextKeys)
}

func TestNextTurnOfAChatSeesChangesThatADeadWorkerDidNotMerge(t *testing.T) {
	t.Parallel()
	k := newKit(t, setsPlan("gold"))
	require.NoError(t, k.Variables.Merge(t.Context(), "app", "chat", 0, variables.Delta{}))
	k.diesBeforeMerge()
	require.Equal(t, map[string]any{"plan": "gold"}, k.loaded())
}

func TestMessageOfAnEndedTurnMergesWhatADeadWorkerDidNot(t *testing.T) {
	t.Parallel()
	id := events.TurnID{App: "app", Chat: "chat", Turn: "turn"}
	for name, handle := range map[string]func(k *kit) inbound.Disposition{
		"redelivery": func(k *kit) inbound.Disposition { return k.Handle(t.Context(), k.message(1, 2)) },
		"duplicate":  func(k *kit) inbound.Disposition { return k.Handle(t.Context(), k.message(2, 1)) },
		"cancel":     func(k *kit) inbound.Disposition { return k.cancelTurn(3, id) },
		"resume": func(k *kit) inbound.Disposition {
			body, err := events.EncodeResume(&events.Resume{TurnID: id, Workflow: "WF"}, time.Now())
			require.NoError(t, err)
			return k.Handle(t.Context(), k.mail(4, events.KindResume, body).Message)
		},
	} {
		k := newKit(t, setsPlan("gold"))
		k.diesBeforeMerge()
		v, ok := k.Variables.(*variables.Variables)
		require.True(t, ok)
		v.Journal = nil // so that loading merges nothing
		require.Empty(t, k.loaded(), name)
		require.Equal(t, inbound.Ack, handle(k).Do, name)
		require.Equal(t, map[string]any{"plan": "gold"}, k.loaded(), name)
	}
}

func TestLateResultMergesWhatTheDeadWorkerOfTheFirstResponseDidNot(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"lease": false, "lost lease": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lateResult(t, lost)
		})
	}
}

func lateResult(t *testing.T, lost bool) {
	t.Helper()
	held, lose := context.WithCancel(t.Context())
	defer lose()
	taken, died := make(chan struct{}), make(chan struct{})
	k := newKit(t, toolFunc(func(_ context.Context, c *tools.Call) (tools.Result, error) {
		if c.Epoch == 1 {
			<-taken
		} else {
			close(taken)
			<-died
			if lost {
				lose()
			}
		}
		return tools.Result{Set: map[string]any{"epoch": json.Number(strconv.Itoa(c.Epoch))}}, nil
	}))
	k.bind(bindings.EffectIdempotent, time.Minute)
	config := k.Config
	config.Variables = interruptedMerge{k.Variables}
	go func() {
		defer close(died)
		handlers.New(config).Handle(t.Context(), k.message(1, 1))
	}()
	require.Eventually(t, func() bool {
		claims, err := k.Journal.Claims(t.Context(), subjects.TurnKey("app", "chat", "", "turn"))
		return err == nil && claims[0] != nil
	}, 10*time.Second, time.Millisecond)
	v, ok := k.Variables.(*variables.Variables)
	require.True(t, ok)
	m := k.message(1, 2)
	m.Held = held
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	v.Journal = nil // so that loading merges nothing
	require.Equal(t, map[string]any{"epoch": json.Number("1")}, k.loaded())
}

func TestReadThatFindsAResponseWithoutItsChangesIsRepeated(t *testing.T) {
	t.Parallel()
	k := newKit(t, setsPlan("gold"))
	k.diesBeforeMerge()
	fresh := k.Journal
	k.Journal = idempotency.New(hiddenDelta{k.store}, "stale", idempotency.Options{})
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), k.message(1, 2)).Do)
	later := k.Config
	later.ServerTime = func(context.Context) (time.Time, error) { return time.Now().Add(time.Hour), nil }
	require.Equal(t, inbound.Ack, handlers.New(later).Handle(t.Context(), k.message(1, 3)).Do, "they have expired")
	k.Journal = fresh
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 4)).Do)
	v, ok := k.Variables.(*variables.Variables)
	require.True(t, ok)
	v.Journal = nil
	require.Equal(t, map[string]any{"plan": "gold"}, k.loaded())
}

// hiddenDelta is a store whose reads find no changes of context variables.
type hiddenDelta struct{ idempotency.Store }

func (s hiddenDelta) Last(ctx context.Context, key string) (idempotency.Record, error) {
	if strings.Contains(key, ".delta.") {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return s.Store.Last(ctx, key)
}

func (s hiddenDelta) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, s.Last, keys)
}

func TestStagedChangeDoesNotCountBeforeTheResponse(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	key := subjects.TurnKey("app", "chat", "", "turn")
	claimed, err := k.Journal.Claim(t.Context(), idempotency.Claim{Key: key, Lease: k.message(1, 1).Lease, Effect: "idempotent", Event: k.claimEvent()})
	require.NoError(t, err)
	seq, err := k.Journal.Delta(t.Context(), claimed.Hold, []byte(`{"set":{"plan":"gold"}}`))
	require.NoError(t, err)
	change := variables.Change{Delta: variables.Delta{Set: map[string]any{"plan": "gold"}}, Run: claimed.Hold, Seq: seq}
	require.NoError(t, k.Variables.Stage(t.Context(), "app", "chat", change))
	require.Empty(t, k.loaded())
	stored, err := k.Journal.Finish(t.Context(), claimed.Hold, []byte(`{"type":"chat.tool_response","data":{"kind":"tool_response","context_keys":["plan"]}}`))
	require.NoError(t, err)
	require.True(t, stored)
	require.Equal(t, map[string]any{"plan": "gold"}, k.loaded())
}

func TestContextVariablesAreReadFromTheLeader(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	require.NoError(t, k.Variables.Merge(t.Context(), "app", "chat", 1, variables.Delta{Set: map[string]any{"plan": "gold"}}))
	nc := k.js.Conn()
	direct, err := nc.SubscribeSync("$JS.API.DIRECT.GET.KV_" + k.space.ContextBucket() + ".>")
	require.NoError(t, err)
	leader, err := nc.SubscribeSync("$JS.API.STREAM.MSG.GET.KV_" + k.space.ContextBucket())
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	require.Equal(t, map[string]any{"plan": "gold"}, k.loaded())
	_, err = leader.NextMsg(5 * time.Second)
	require.NoError(t, err)
	n, _, err := direct.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestContextVariableCannotTakeTheNameOfWhatIsStaged(t *testing.T) {
	t.Parallel()
	k := newKit(t, returns(tools.Result{Set: map[string]any{"\x00staged": "x"}}))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.soon()).Do)
	require.Equal(t, events.CodeTooLarge, k.response().Code)
	require.Empty(t, k.loaded())
}

func TestNoToolChangesWhatTheTurnItselfDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result  tools.Result
		keys    []string
		ignored string
	}{
		"set":    {tools.Result{Set: map[string]any{"chat_id": "evil", "app_id": "evil", "plan": "gold"}}, []string{"plan"}, `names="[app_id chat_id]"`},
		"remove": {tools.Result{Remove: []string{"agent_name", "plan"}}, []string{"plan"}, "names=[agent_name]"},
		"both":   {tools.Result{Set: map[string]any{"workflow_name": "x"}, Remove: []string{"turn_idempotency_key"}}, nil, `names="[turn_idempotency_key workflow_name]"`},
		"none":   {tools.Result{Set: map[string]any{"plan": "gold"}}, []string{"plan"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			k := newKit(t, returns(c.result))
			k.Logger = slog.New(slog.NewTextHandler(&log, nil))
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.soon()).Do)
			r := k.response()
			require.True(t, r.Success)
			require.Equal(t, c.keys, r.ContextKeys)
			if c.ignored == "" {
				require.NotContains(t, log.String(), "ignored")
			} else {
				require.Equal(t, 1, strings.Count(log.String(), "these changes are ignored"), log.String())
				require.Contains(t, log.String(), c.ignored)
			}
			for name := range k.loaded() {
				require.Equal(t, "plan", name)
			}
		})
	}
}

func TestStagedChangesOfAChatAreBounded(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	const most = 64
	for n := range uint64(most + 10) {
		run := idempotency.Hold{Key: subjects.TurnKey("app", "chat", "", "turn"), Nonce: "n", Token: 1}
		seq, err := k.Journal.Delta(t.Context(), idempotency.Hold{Key: run.Key, Nonce: "n", Epoch: int(n) + 1}, []byte(`{}`))
		require.NoError(t, err)
		require.NoError(t, k.Variables.Stage(t.Context(), "app", "chat", variables.Change{Run: run, Seq: seq}))
	}
	kv, key := k.document()
	entry, err := kv.Get(t.Context(), key)
	require.NoError(t, err)
	var doc map[string]struct {
		Staged []any `json:"staged"`
	}
	require.NoError(t, json.Unmarshal(entry.Value(), &doc))
	require.Len(t, doc["\x00staged"].Staged, most)
}
