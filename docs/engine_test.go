package docs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

func find(_ context.Context, in struct{ City string }) (string, error) {
	return "3 tickets to " + in.City, nil
}

// TestEventsOfTheEnginePageAreEmitted checks the names of the page against a call.
func TestEventsOfTheEnginePageAreEmitted(t *testing.T) {
	t.Parallel()
	page := pages(t)["engine.md"]
	var recorder engine.Recorder
	tool := engine.Tool{Invoker: tools.Func(find)}
	engine.New(engine.Options{Tracer: &recorder}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "find"}, Tool: tool})
	for _, name := range recorder.Names() {
		if strings.HasSuffix(name, ".start") {
			require.Contains(t, page, "`"+name+"`")
		}
	}
	require.Len(t, recorder.Names(), 10)
}
