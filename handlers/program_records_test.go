package handlers_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// TestStepsTogetherLeaveABoundedNumberOfRecords has calls that each stay within their limits.
func TestStepsTogetherLeaveABoundedNumberOfRecords(t *testing.T) {
	t.Parallel()
	k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		for n := range 900 {
			if _, err := call.Host.Show(ctx, tools.Surface{Name: strconv.Itoa(n)}); err != nil {
				return tools.Result{}, err
			}
		}
		return tools.Result{Value: json.RawMessage(`{}`)}, nil
	}})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", calls(repeated(10, `two {}`)...), 1)).Do)
	r := k.response()
	require.Equal(t, events.CodeTooLarge, r.Code)
	require.Contains(t, r.Content, "the questions, surfaces and steps of this turn have 6000 records, and no turn may have more")
	shown := 0
	for _, name := range k.names() {
		if strings.Contains(name, ".show.") {
			shown++
		}
	}
	require.Equal(t, 3000, shown, "each may be dismissed")
}
