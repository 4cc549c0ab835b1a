package hostile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
)

// TestH02DefaultsDoNotMakeASmallMessageALargeOne: an empty object is three bytes of a message,
// and may stand for a kilobyte of defaults.
func TestH02DefaultsDoNotMakeASmallMessageALargeOne(t *testing.T) { //nolint:paralleltest // measures the process
	schema := fmt.Sprintf(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":%q}}}}}}`,
		strings.Repeat("d", 1000))
	count := oneturn.NewTool("count", func(_ context.Context, in map[string]any) (int, error) {
		list, _ := in["list"].([]any)
		return len(list), nil
	}, oneturn.ToolOptions{Workflow: "Echo", Agent: "Echoer", Model: "Echo", Schema: json.RawMessage(schema)})
	l := newLab(t, count)
	for i, n := range []int{10, 300, 2_000, 3_900, 4_000, 90_000} {
		key := strconv.Itoa(i)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.send("c", nil, raw("c", key, `{"list":[`+strings.Repeat("{},", n-1)+`{}]}`))
		r := l.await(turn("c", key).TurnID)
		runtime.ReadMemStats(&after)
		if n < 3_900 {
			require.True(t, r.Success, r.Content)
			require.Equal(t, number(strconv.Itoa(n)), r.Payload)
		}
		if n > 3_900 {
			require.Equal(t, events.CodeValidationFailed, r.Code, n)
		}
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxMemory), "%d objects, client and server included", n)
	}
	require.Zero(t, l.metric("oneturn_redeliveries_total"))
	l.goesOn()
	l.drained()
}
