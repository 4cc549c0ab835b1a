package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tools"
)

// F23: the clocks of workers are an hour off, jump back, and run fast. Who owns a turn, how often
// its tool is entered and what is stored never depends on them.
func TestClocksDecideNothingAboutATurn(t *testing.T) {
	t.Parallel()
	now := time.Now
	shifted := func(d time.Duration) func() time.Time { return func() time.Time { return now().Add(d) } }
	jumping := func() func() time.Time { // ten minutes back at every other look
		looks := 0
		return func() time.Time {
			looks++
			return now().Add(-time.Duration(looks%2) * 10 * time.Minute)
		}
	}
	drifting := func() func() time.Time { // 2 % fast since an hour
		begin := now().Add(-time.Hour)
		return func() time.Time { return begin.Add(time.Since(begin) * 102 / 100) }
	}
	for name, c := range map[string]struct{ first, second func() time.Time }{
		"an hour behind, an hour ahead": {shifted(-time.Hour), shifted(time.Hour)},
		"an hour ahead, an hour behind": {shifted(time.Hour), shifted(-time.Hour)},
		"jumps back":                    {jumping(), jumping()},
		"drifts":                        {drifting(), shifted(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered := 0
			k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
				entered++
				return tools.Result{}, nil
			}))
			worker := func(clock func() time.Time) *handlers.Handlers {
				config := k.Config
				config.Now, config.MaxEventAge = clock, 24*time.Hour
				return handlers.New(config)
			}
			first, second := worker(c.first), worker(c.second)
			// The owner claims and dies before its tool.
			body, err := events.DecodeTurn(k.message(1, 1).Data)
			require.NoError(t, err)
			d, err := k.Journal.Claim(t.Context(), idempotency.Claim{
				Key: subjects.TurnKey("app", "chat", "", "turn"), Lease: k.message(1, 1).Lease, Effect: "idempotent", Event: k.claimEvent(),
				Fingerprint: events.Hex(events.Fingerprint(body)),
			})
			require.NoError(t, err)
			require.Equal(t, idempotency.Run, d.Action)
			require.Equal(t, handlers.Leave, first.Handle(t.Context(), k.message(1, 1)).Do, "the same delivery takes nothing over")
			require.Zero(t, entered)
			require.Equal(t, handlers.Ack, second.Handle(t.Context(), k.message(1, 2)).Do)
			require.Equal(t, handlers.Ack, first.Handle(t.Context(), k.message(1, 3)).Do)
			require.Equal(t, handlers.Ack, second.Handle(t.Context(), k.message(2, 1)).Do)
			require.Equal(t, 1, entered)
			require.True(t, k.response().Success)
		})
	}
}

// F23: a clock that is further off than events may be old refuses turns, and never runs one twice.
func TestClockThatIsFarAheadRefusesTurnsAndRunsNone(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		t.Error("the tool was entered")
		return tools.Result{}, nil
	}))
	k.Now = func() time.Time { return time.Now().Add(k.MaxEventAge + time.Minute) }
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	require.Equal(t, events.CodeTooOld, k.response().Code)
	k.Now = time.Now
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 2)).Do, "the clock is mended; the turn has ended")
}
