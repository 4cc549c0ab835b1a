package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

func TestToolThatWaitsInMemoryBecauseItIsUnsafeIsNamedOnce(t *testing.T) {
	t.Parallel()
	for effect, want := range map[bindings.Effect]int{bindings.EffectUnsafe: 1, bindings.EffectReplay: 0} {
		inBubble(t, effect, asks("", ""), func(t *testing.T, o *bubble) {
			t.Helper()
			var log bytes.Buffer
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			for i := range 3 {
				turn := fmt.Sprint("turn", i)
				o.key = subjects.TurnKey("app", "chat", "", turn)
				done := o.handle(o.turn(func(e *events.StructuredOutputReady) { e.Turn = turn }))
				for _, ask := range []string{"1", "2"} {
					m := o.answers(ask, "yes")
					m.Data = bytes.ReplaceAll(m.Data, []byte("turn/"), []byte(turn+"/"))
					require.Equal(t, inbound.Ack, o.Handle(t.Context(), m).Do)
					o.PollQuestions()
					synctest.Wait()
				}
				require.Equal(t, inbound.Ack, settled(t, done).Do)
			}
			require.Equal(t, want, strings.Count(log.String(), "effect unsafe asks people"), log.String())
			require.Equal(t, want, strings.Count(log.String(), "effect: replay"))
		})
	}
}

// whileParking is a store in which something happens when the first run is about to be parked.
type whileParking struct {
	*storetest.Memory

	begun atomic.Bool
	do    func() // comes to Create itself
}

// Create implements [idempotency.Store].
func (s *whileParking) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if strings.Contains(r.Key, ".park.") && !s.begun.Swap(true) {
		s.do()
		for range 1000 { // a tool that waits for that calls its host
			runtime.Gosched()
		}
	}
	return s.Memory.Create(ctx, r)
}

func TestQuestionThatIsAskedWhileItsRunParksIsNeitherLostNorStuck(t *testing.T) {
	t.Parallel()
	var parking chan struct{}
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		values, errs := make([]json.RawMessage, 2), make(chan error, 2)
		for i, begin := range []<-chan struct{}{nil, parking} {
			go func() {
				if begin != nil {
					<-begin
				}
				a, err := call.Host.Ask(ctx, tools.Question{Name: string(rune('a' + i))})
				values[i] = a.Value
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs); err != nil {
			return tools.Result{}, err
		}
		value, err := json.Marshal(values)
		return tools.Result{Value: value}, err
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		parking = make(chan struct{})
		o.Journal = idempotency.New(&whileParking{Memory: o.store, do: func() { close(parking) }}, "w", idempotency.Options{})
		done := o.handle(o.turn())
		pass(11 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
		_, err := o.store.Last(t.Context(), o.key.Public(events.RecordAsk, subjects.Token("b")))
		require.ErrorIs(t, err, idempotency.ErrNotFound, "a question that no run waits for is not stored")

		second := o.handle(o.answers("a", "1"))
		pass(11 * time.Second) // it asks b, and parks again
		require.Equal(t, inbound.Ack, settled(t, second).Do)
		require.True(t, o.parked())
		o.answer("b", "2")
		require.Equal(t, []any{"1", "2"}, o.response().Payload)
	})
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) { // woken meanwhile, it continues, asks, and is parked
		t.Helper()
		parking = make(chan struct{})
		o.Journal = idempotency.New(&whileParking{Memory: o.store, do: func() {
			require.Equal(t, inbound.Ack, o.Handle(t.Context(), o.answers("a", "1")).Do)
			close(parking)
		}}, "w", idempotency.Options{})
		done := o.handle(o.turn())
		pass(11 * time.Second)
		require.False(t, o.parked())
		pass(11 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
		o.answer("b", "2")
		require.Equal(t, []any{"1", "2"}, o.response().Payload)
	})
}
