package conformance_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) { oneturntest.VerifyNoLeaks(m) }

// golang is a Go function of the suite.
func golang(name string) tools.Invoker {
	return tools.Func(func(ctx context.Context, args map[string]any) (json.RawMessage, error) {
		call := tools.CallFrom(ctx)
		data, err := (&tools.Call{Args: args}).EncodedArgs()
		if err != nil {
			return nil, err
		}
		return conformance.Function(ctx, name, data, conformance.Host{
			Identity: conformance.Identity{
				IdempotencyKey: call.IdempotencyKey, FencingToken: call.FencingToken, Epoch: call.Epoch, Attempt: call.Attempt, Depth: call.Depth,
			},
			Progress: func(ctx context.Context, percent float64, message string) error {
				host, err := tools.HostFrom(ctx, "progress")
				if err != nil {
					return err
				}
				return host.Progress(ctx, tools.Progress{Percent: percent, Message: message})
			},
			Ask: func(ctx context.Context, name string) (json.RawMessage, error) {
				host, err := tools.HostFrom(ctx, "ask")
				if err != nil {
					return nil, err
				}
				a, err := host.Ask(ctx, tools.Question{Name: name, Tool: "Color"})
				return a.Value, err
			},
		})
	})
}

// F30 among others: a function that panics is an error, and the next call runs.
func TestGoFunctionsConform(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Kind{Name: "go", Invoker: golang, Cannot: map[string]string{
		"marked": "encoding/json writes its results", "nan": "encoding/json writes its results",
		"huge": "numbers are bounded where the result is stored",
	}})
}
