package handlers_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// broken is a store whose reads panic.
type broken struct{ idempotency.Store }

func (broken) Scan(context.Context, subjects.Key) ([]idempotency.Record, error) {
	panic("a fault of ours")
}

func TestLiveCopyOfACancelThatPanicsEndsNoWorker(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.Journal = idempotency.New(broken{k.store}, "w", idempotency.Options{})
	var log bytes.Buffer
	k.Logger = slog.New(slog.NewTextHandler(&log, nil))
	body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
	require.NoError(t, err)
	k.CancelWished(k.space.In("default", events.KindCancel, "app", "WF", "chat"), body)
	require.Contains(t, log.String(), "a fault of ours")
}
