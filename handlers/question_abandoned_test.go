package handlers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestCodeAfterAQuestionThatTheToolAbandonedRunsOnce(t *testing.T) {
	t.Parallel()
	entered := 0
	release := make(chan struct{})
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		entered++
		patience, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := call.Host.Ask(patience, tools.Question{}); !errors.Is(err, context.DeadlineExceeded) {
			return tools.Result{}, err
		}
		<-release // it charges a card
		return tools.Result{}, nil
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		release = make(chan struct{})
		held, lose := context.WithCancel(t.Context())
		m := o.turn()
		m.Held = held
		lost := o.handle(m)
		pass(2 * time.Second)
		lose() // its worker dies
		again := *m
		again.Lease.Delivery, again.Held = 2, t.Context()
		require.Equal(t, inbound.Ack, settled(t, o.handle(&again)).Do)
		require.Equal(t, events.CodeInterrupted, o.response().Code)
		require.Equal(t, 1, entered)
		close(release)
		settled(t, lost)
	})
}

func TestAbandonedQuestionIsAskedAgainWhileALaterOneIsOpen(t *testing.T) {
	t.Parallel()
	var got []string
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		patience, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		first, err := call.Host.Ask(patience, tools.Question{})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return tools.Result{}, err
		}
		second, err := call.Host.Ask(ctx, tools.Question{})
		if err != nil {
			return tools.Result{}, err
		}
		got = []string{string(first.Value), string(second.Value)}
		return tools.Result{}, nil
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		pass(time.Minute)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
		o.answer("1", "late") // no run waits for it, and the next run finds it
		o.answer("2", "yes")
		require.True(t, o.response().Success)
		require.Equal(t, []string{`"late"`, `"yes"`}, got)
	})
}
