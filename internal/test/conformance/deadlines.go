package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

// Promises about time: a call ends at its deadline, the deadline and a cancel reach the tool, a timeout is reported
// once, and the cause of a stop is kept.

var deadlines = []test{ //nolint:gochecknoglobals // a table
	{"CallWithoutTimeIsNotEntered", []string{"slow"}, (*suite).needsTime},
	{"DeadlineEndsTheCall", []string{"slow"}, (*suite).endsInTime},
	{"DeadlineReachesTheTool", []string{"slow", CancelReaches}, (*suite).deadlineReaches},
	{"TimeoutIsNotTriedAgain", []string{"slow"}, (*suite).timesOutOnce},
	{"CancelEndsTheCallAndReachesTheTool", []string{"slow", CancelReaches}, (*suite).cancelReaches},
	{"CancelStopsTheCallForItsCause", []string{"slow"}, (*suite).stopsForItsCause},
}

const (
	brief   = time.Second // what a call may take that has to run out of time
	forever = 10 * 60     // seconds that no test waits for
)

func (s *suite) needsTime() {
	note, args := s.note(map[string]any{"seconds": 0})
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.kind.Invoker("slow").Invoke(ctx, s.call("slow", args))
	require.Error(s, err)
	s.works() // what would have been sent before it
	require.Zero(s, s.noted(note, noteBegun), "a call whose context had ended was entered")
}

// slow calls slow with a context that ends by itself or by when, once it was entered.
func (s *suite) slow(ctx context.Context, when func(note string)) (note string, err error) {
	s.Helper()
	note, args := s.note(map[string]any{"seconds": forever})
	done := make(chan error, 1)
	call := s.call("slow", args)
	invoker := s.kind.Invoker(call.Name)
	go func() {
		_, err := invoker.Invoke(ctx, call)
		done <- err
	}()
	if when != nil {
		when(note)
	}
	select {
	case err = <-done:
	case <-time.After(2 * patience):
		require.Fail(s, "the invoker does not return when its context ends")
	}
	return note, err
}

func (s *suite) endsInTime() {
	s.works()
	ctx, cancel := context.WithTimeout(s.Context(), brief)
	defer cancel()
	_, err := s.slow(ctx, nil)
	if errors.Is(err, context.DeadlineExceeded) && events.CodeOf(err) == "" { // the engine gives it its code
		err = &events.Error{Code: events.CodeTimeout, Err: err}
	}
	s.failed(err, "", events.CodeTimeout)
	s.works()
}

func (s *suite) deadlineReaches() {
	s.works() // what has to be started is there
	for limit := brief; ; limit *= 3 {
		ctx, cancel := context.WithTimeout(s.Context(), limit)
		note, err := s.slow(ctx, nil)
		cancel()
		require.Error(s, err)
		if s.noted(note, noteBegun) == 0 && limit < patience { // on a busy machine it was not entered in time
			continue
		}
		s.eventuallyNoted(note, noteCancelled)
		return
	}
}

func (s *suite) timesOutOnce() {
	s.works()
	note, args := s.note(map[string]any{"seconds": forever})
	o := s.do(s.Context(), s.call("slow", args), 3, brief)
	require.Equal(s, events.CodeTimeout, o.Code, "%v", o.Err)
	require.Equal(s, 1, o.Attempts)
	require.Equal(s, 1, s.noted(note, noteBegun), "how often it was entered")
}

func (s *suite) cancelReaches() {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	note, err := s.slow(ctx, func(note string) {
		s.eventuallyNoted(note, noteBegun)
		cancel()
	})
	require.Error(s, err)
	require.False(s, tools.IsRetryable(err), "%v", err)
	s.eventuallyNoted(note, noteCancelled)
	s.works()
}

func (s *suite) stopsForItsCause() {
	cause := errors.New("the turn was cancelled")
	ctx, cancel := context.WithCancelCause(s.Context())
	defer cancel(nil)
	note, args := s.note(map[string]any{"seconds": forever})
	call := s.call("slow", args)
	done := make(chan engine.Outcome, 1)
	go func() { done <- s.do(ctx, call, 3, patience) }()
	s.eventuallyNoted(note, noteBegun)
	cancel(cause)
	o := <-done
	require.ErrorIs(s, o.Stopped, cause)
	require.True(s, o.Entered)
	require.Equal(s, 1, o.Attempts)
}
