package guards

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/tools"
)

// Allow lets the agents that it names call nothing but the tools listed for them. Agents that it
// does not name are not its business; one with an empty list may call nothing.
type Allow map[string][]string

// Input implements [Guard].
func (a Allow) Input(_ context.Context, call *tools.Call) error {
	list, named := a[call.Agent]
	if !named || slices.Contains(list, call.Name) {
		return nil
	}
	allowed := "none"
	if len(list) > 0 {
		allowed = strings.Join(list, ", ")
	}
	return &Refusal{Reason: "the agent may not call this tool; allowed: " + allowed}
}

// Names reports whether the guard looks at an agent.
func (a Allow) Names(agent string) bool {
	_, named := a[agent]
	return named
}

// String names the callers that the guard allows.
func (a Allow) String() string {
	return "allow-list of " + strings.Join(slices.Sorted(maps.Keys(a)), ", ")
}

// Output implements [Guard].
func (Allow) Output(context.Context, *tools.Call, json.RawMessage) error { return nil }
