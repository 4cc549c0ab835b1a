package docs_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

// phases records the names of the trace events of a call.
type phases []string

func (p *phases) Emit(_ context.Context, name string, _ ...slog.Attr) { *p = append(*p, name) }

func find(_ context.Context, in struct{ City string }) (string, error) {
	return "3 tickets to " + in.City, nil
}

// TestEventsOfTheEnginePageAreEmitted checks the names of the page against a call.
func TestEventsOfTheEnginePageAreEmitted(t *testing.T) {
	t.Parallel()
	page := pages(t)["engine.md"]
	var recorder phases
	tool := engine.Tool{Invoker: tools.Func(find)}
	engine.New(engine.Options{Tracer: &recorder}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "find"}, Tool: tool})
	for _, name := range recorder {
		if strings.HasSuffix(name, ".start") {
			require.Contains(t, page, "`"+name+"`")
		}
	}
	require.Len(t, recorder, 10)
}
