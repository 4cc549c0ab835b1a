package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
)

// stepless is a journal whose reads of a single record find no steps, as on a server that has none yet.
type stepless struct{ *storetest.Memory }

func (s stepless) Last(ctx context.Context, key string) (idempotency.Record, error) {
	if strings.Contains(key, ".step.") {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return s.Memory.Last(ctx, key)
}

func (s stepless) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, s.Last, keys)
}

func TestStepOfAnEarlierRunIsNotDoneAgainForAStaleRead(t *testing.T) {
	t.Parallel()
	charged := 0
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		result, done, err := call.Host.StepResult(ctx, "charge")
		if err == nil && !done {
			charged++
			result, err = call.Host.StoreStep(ctx, "charge", json.RawMessage(`"paid"`))
		}
		if err != nil {
			return tools.Result{}, err
		}
		_, err = call.Host.Ask(ctx, tools.Question{})
		return tools.Result{Value: result}, err
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		o.handle(o.turn())
		pass(time.Minute)
		require.True(t, o.parked())
		o.Journal = idempotency.New(stepless{o.store}, "w", idempotency.Options{})
		o.answer("1", "yes")
		require.Equal(t, "paid", o.response().Payload)
		require.Equal(t, 1, charged)
	})
}
