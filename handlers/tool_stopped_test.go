package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/subjects"
)

// queue is a tool whose calls wait until they are let in, if ever.
type queue struct {
	waits, runs chan struct{} // get one for each call that waits, that runs
	open        chan struct{}
}

func newQueue() *queue {
	return &queue{waits: make(chan struct{}, 1), runs: make(chan struct{}, 1), open: make(chan struct{})}
}

func (*queue) Queues() bool { return true }

func (q *queue) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	q.waits <- struct{}{}
	select {
	case <-q.open:
	case <-ctx.Done():
		return tools.Result{}, ctx.Err()
	}
	call.Enter()
	q.runs <- struct{}{}
	<-ctx.Done()
	return tools.Result{}, ctx.Err()
}

// bind gives the tool of the kit another effect and timeout.
func (k *kit) bind(effect bindings.Effect, timeout time.Duration) {
	k.t.Helper()
	set, err := bindings.Load(k.t.Context(), bindings.Options{Declared: []bindings.Declaration{{
		Workflow: "WF", Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(`{"type":"object"}`),
		Effect: effect, Timeout: timeout,
	}}})
	require.NoError(k.t, err)
	k.Bindings = func() *bindings.Set { return set }
}

// stopped handles a turn that is stopped with cause while it waits or, if let in, runs.
func (k *kit) stopped(q *queue, letIn bool, stop func(cancel context.CancelCauseFunc)) inbound.Disposition {
	k.t.Helper()
	ctx, cancel := context.WithCancelCause(k.t.Context())
	defer cancel(nil)
	m, ended := k.message(1, 1), make(chan inbound.Disposition, 1)
	go func() { ended <- k.Handle(ctx, m) }()
	<-q.waits
	if letIn {
		close(q.open)
		<-q.runs
	}
	stop(cancel)
	return <-ended
}

func drain(cancel context.CancelCauseFunc) { cancel(handlers.ErrDraining) }

func TestStoppedTurnStatesWhetherItsToolWasEntered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect  bindings.Effect
		entered bool
		cancel  bool
		code    events.Code
		content string
	}{
		"unsafe, drained in the queue": {
			bindings.EffectUnsafe, false, false, events.CodeInterrupted, "The worker stopped before tool t was entered: it did not run.",
		},
		"unsafe, drained in the tool": {
			bindings.EffectUnsafe, true, false, events.CodeInterrupted,
			"The worker stopped, or lost the turn, while tool t ran: its effect may or may not have happened, and it is not run again.",
		},
		"unsafe, cancelled in the queue": {
			bindings.EffectUnsafe, false, true, events.CodeCancelled, "The turn was cancelled before tool t was entered: it did not run.",
		},
		"unsafe, cancelled in the tool": {
			bindings.EffectUnsafe, true, true, events.CodeCancelled,
			"The turn was cancelled while tool t ran: its effect may or may not have happened.",
		},
		"idempotent, cancelled in the queue": {
			bindings.EffectIdempotent, false, true, events.CodeCancelled, "The turn was cancelled before this worker entered tool t.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, log := newQueue(), &bytes.Buffer{}
			k := newKit(t, q)
			k.bind(c.effect, 0)
			k.Logger = slog.New(slog.NewTextHandler(log, nil))
			stop := drain
			if c.cancel {
				stop = func(context.CancelCauseFunc) { k.cancelSeen() }
			}
			require.Equal(t, inbound.Ack, k.stopped(q, c.entered, stop).Do)
			r := k.response()
			require.Equal(t, c.code, r.Code)
			require.Equal(t, c.content, r.Content)
			require.Equal(t, c.entered, r.Attempts == 1, "attempts: %d", r.Attempts)
			require.Contains(t, log.String(), fmt.Sprintf("entered=%t", c.entered))
			require.NotContains(t, log.String(), "tool failed")
			require.NotContains(t, log.String(), `code=""`)
		})
	}
}

func TestTurnThatMayRunAgainIsRedeliveredWhenItsWorkerDrains(t *testing.T) {
	t.Parallel()
	for _, entered := range []bool{false, true} {
		q := newQueue()
		k := newKit(t, q)
		require.Equal(t, inbound.Nak, k.stopped(q, entered, drain).Do)
		_, err := k.store.Last(t.Context(), subjects.TurnKey("app", "chat", "", "turn").Public("tool_response"))
		require.Error(t, err)
	}
}

// cancelSeen stores a cancel of the turn and has its live copy arrive.
func (k *kit) cancelSeen() {
	key := subjects.TurnKey("app", "chat", "", "turn")
	if err := k.Journal.Cancel(context.Background(), idempotency.Claim{Key: key}, []byte(`{}`)); err != nil {
		k.t.Errorf("cancel: %v", err)
	}
	k.CancelSeen(key)
}

func TestLiveCopyOfACancelThatTheJournalDoesNotHaveCancelsNothing(t *testing.T) {
	t.Parallel()
	key := subjects.TurnKey("app", "chat", "", "turn")
	var k *kit
	k = newKit(t, toolFunc(func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		k.CancelSeen(key)
		return tools.Result{}, context.Cause(ctx)
	}))
	k.bind(bindings.EffectUnsafe, 0)
	k.CancelSeen(key) // nor before it runs
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.True(t, k.response().Success, k.response().Content)
}

func TestCancelSeenBeforeItsTurnKeepsTheToolOut(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) { panic("entered") }))
	k.bind(bindings.EffectUnsafe, 0)
	k.cancelSeen()
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.Equal(t, "The turn was cancelled before tool t was entered: it did not run.", k.response().Content)
}

func TestTimeoutStatesWhatIsKnownToPeopleAndToPrograms(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}))
	k.bind(bindings.EffectUnsafe, 20*time.Millisecond)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	r := k.response()
	require.Equal(t, events.CodeTimeout, r.Code)
	require.Equal(t, "Tool t did not end within 20ms: its effect may or may not have happened.", r.Content)
	payload, ok := r.Payload.(map[string]any)
	require.True(t, ok)
	require.Equal(t, "tool_error:timeout", payload["message"])
}

// TestPythonTurnsThatWaitForAProcessAllRun has more turns than the one process gets through
// within the timeout of one.
func TestPythonTurnsThatWaitForAProcessAllRun(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "flows")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "WF", "tools"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "WF", "tools", "t.py"), []byte(`
import time
def t(**data):
    time.sleep(0.3)
    return {"status": "done"}
`), 0o600))
	pool := python.NewPool(python.Options{Root: root, Size: 1})
	t.Cleanup(func() { require.NoError(t, pool.Close(context.WithoutCancel(t.Context()))) })
	k := newKit(t, pool.Tool("WF", "t.py", "t"))
	const turns, timeout = 8, 1500 * time.Millisecond
	k.bind(bindings.EffectUnsafe, timeout)

	start := time.Now()
	var all sync.WaitGroup
	for i := range turns {
		m := k.message(uint64(i+1), 1)
		m.Data = []byte(strings.Replace(string(m.Data), `"turn"`, fmt.Sprintf(`"turn-%d"`, i), 1))
		all.Go(func() { k.Handle(t.Context(), m) })
	}
	all.Wait()
	require.Greater(t, time.Since(start), timeout)
	for i := range turns {
		r, err := k.store.Last(t.Context(), subjects.TurnKey("app", "chat", "", fmt.Sprintf("turn-%d", i)).Public("tool_response"))
		require.NoError(t, err)
		require.Contains(t, string(r.Data), `"status":"ok"`)
	}
}
