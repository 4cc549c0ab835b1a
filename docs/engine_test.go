package docs_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

func find(_ context.Context, in struct{ City string }) (string, error) {
	return "3 tickets to " + in.City, nil
}

func call(ctx context.Context) engine.Outcome {
	e := engine.New(engine.Options{Cache: engine.NewLRU(0)})
	future := e.Go(ctx, engine.Invocation{
		Call: &tools.Call{Name: "find"}, Raw: json.RawMessage(`{"city": "Rome"}`),
		Tool: engine.Tool{Invoker: tools.Func(find), MaxAttempts: 3, Timeout: 5 * time.Second},
	})
	return future.Wait(ctx)
}

func TestGoOfTheEnginePageCalls(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"3 tickets to Rome"`, string(call(t.Context()).Payload))
}

// TestEventsOfTheEnginePageAreTold holds the names of the page against a call.
func TestEventsOfTheEnginePageAreTold(t *testing.T) {
	t.Parallel()
	page := pages(t)["engine.md"]
	var told engine.Recorder
	tool := engine.Tool{Invoker: tools.Func(find)}
	engine.New(engine.Options{Tracer: &told}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "find"}, Tool: tool})
	for _, name := range told.Names() {
		if strings.HasSuffix(name, ".start") {
			require.Contains(t, page, "`"+name+"`")
		}
	}
	require.Len(t, told.Names(), 10)
}
