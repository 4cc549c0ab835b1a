package handlers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// F23: the clocks of workers are an hour off, jump back, and run fast. The owner of a turn, how often
// its tool is entered and what is stored never depend on them.
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
		"an hour slow, an hour ahead": {shifted(-time.Hour), shifted(time.Hour)},
		"an hour ahead, an hour slow": {shifted(time.Hour), shifted(-time.Hour)},
		"jumps back":                  {jumping(), jumping()},
		"drifts":                      {drifting(), shifted(0)},
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
			require.Equal(t, inbound.Leave, first.Handle(t.Context(), k.message(1, 1)).Do, "the same delivery takes nothing over")
			require.Zero(t, entered)
			require.Equal(t, inbound.Ack, second.Handle(t.Context(), k.message(1, 2)).Do)
			require.Equal(t, inbound.Ack, first.Handle(t.Context(), k.message(1, 3)).Do)
			require.Equal(t, inbound.Ack, second.Handle(t.Context(), k.message(2, 1)).Do)
			require.Equal(t, 1, entered)
			require.True(t, k.response().Success)
		})
	}
}

// F23: see docs/faults.md. Ages are measured by the server's clock, whatever the clock of the worker is.
func TestClockOfTheWorkerMakesNoMessageOlderOrYounger(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": 48 * time.Hour, "half a minute ahead": 31 * time.Second, "slow": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := func() time.Time { return time.Now().Add(skew) }
			t.Run("too old", func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(nothing))
				k.Now = clock
				require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
				require.True(t, k.response().Success, "it is new")
				old := newKit(t, toolFunc(nothing))
				old.Now = clock
				m := old.message(1, 1)
				m.Stored = time.Now().Add(-old.MaxEventAge - time.Minute)
				require.Equal(t, inbound.Ack, old.Handle(t.Context(), m).Do)
				require.Equal(t, events.CodeTooOld, old.response().Code)
			})
			t.Run("binding grace", func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(nothing))
				none, err := bindings.Load(t.Context(), bindings.Options{})
				require.NoError(t, err)
				k.Now, k.BindingGrace, k.Bindings = clock, 30*time.Second, func() *bindings.Set { return none }
				m := k.message(1, 1)
				require.Equal(t, inbound.Nak, k.Handle(t.Context(), m).Do)
				m.Stored = time.Now().Add(-31 * time.Second)
				require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
				require.Equal(t, events.CodeNoBinding, k.response().Code)
			})
			t.Run("early answer", func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(nothing))
				k.Now = clock
				a := k.asker("turn", "")
				m := k.answers(9, a.question("1"), "yes")
				require.Equal(t, inbound.Nak, k.Handle(t.Context(), m.Message).Do, "its question may be on its way")
				m.Stored = time.Now().Add(-3 * time.Minute)
				require.Equal(t, events.AnswerUnknown, k.handled(m).Code)
			})
		})
	}
}

func TestMessageWhoseAgeIsNotKnownIsRedelivered(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.ServerTime = func(context.Context) (time.Time, error) { return time.Time{}, errors.New("no leader") }
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), k.message(1, 1)).Do)
}

// F23: see docs/faults.md. A question without a timeout is open for the life of its turn, though the
// clock of the worker is slow by more than that.
func TestSlowClockEndsNoQuestion(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"slow by more than the life of a turn": -8 * 24 * time.Hour, "days slow": -3 * 24 * time.Hour, "days ahead": 3 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(func(ctx context.Context, c *tools.Call) (tools.Result, error) {
				_, err := c.Host.Ask(ctx, tools.Question{Name: "q"})
				return tools.Result{}, err
			}))
			var ends []time.Time
			config := k.Config
			config.MaxTurnLife = 7 * 24 * time.Hour
			config.Schedule = func(_ context.Context, e *events.Expire) error {
				ends = append(ends, e.ExpiresAt)
				return nil
			}
			config.Now = func() time.Time { return time.Now().Add(skew) }
			require.Equal(t, inbound.Ack, handlers.New(config).Handle(t.Context(), k.message(1, 1)).Do)
			require.NotEmpty(t, ends)
			require.WithinDuration(t, time.Now().Add(config.MaxTurnLife), ends[0], time.Hour)
		})
	}
}

// F23: see docs/faults.md. How long a failed erase is tried again is a matter of the
// server's clock.
func TestClockOfTheWorkerDoesNotShortenTheTimeToErase(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"two hours ahead": 2 * time.Hour, "two hours slow": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.Now = func() time.Time { return time.Now().Add(skew) }
			owner := k.asker("asks", "")
			owner.ask("1", func(e *events.ToolCall) { e.Secret = true })
			secret := func(seq uint64) *inbound.Message {
				m := k.answers(seq, owner.question("1"), "swordfish").Message
				m.Subject = k.space.In("gpu", events.KindToolCallResponse, "app", "WF", "chat") // of a pool that has not asked
				return m
			}
			d := k.Handle(t.Context(), secret(2))
			require.Equal(t, inbound.Erase, d.Do)
			require.Positive(t, d.Delay)
			old := secret(3)
			old.Stored = time.Now().Add(-90 * time.Minute)
			d = k.Handle(t.Context(), old)
			require.Equal(t, inbound.Erase, d.Do)
			require.Zero(t, d.Delay, "after an hour in the stream it is acknowledged all the same")
		})
	}
}
