package handlers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

// nested is a JSON object of so many levels.
func nested(levels int) string {
	return `{"title":"Shop","deep":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

func TestOutputThatNoEventCanHoldIsAFailedValidation(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	for _, agent := range []string{"Architect", "Critic"} {
		k.deliver(agent+"deepest", agent, nested(events.MaxDataDepth))
		k.deliver(agent+"deeper", agent, nested(events.MaxDataDepth+1))
		k.deliver(agent+"many", agent, `{"title":"Shop","many":[0`+strings.Repeat(",0", events.MaxNodes-4)+`]}`)
	}
	require.Empty(t, k.deadReasons())
	require.Equal(t, true, k.responseOf("Architectdeepest")["success"])
	require.Equal(t, true, k.of("Criticdeepest", events.RecordStructuredOutput)["success"])
	for name, failed := range map[string]map[string]any{
		"too_deep": k.responseOf("Architectdeeper"), "too_many": k.responseOf("Architectmany"),
		"too_deep ": k.of("Criticdeeper", events.RecordStructuredOutput), "too_many ": k.of("Criticmany", events.RecordStructuredOutput),
	} {
		require.Equal(t, "validation_failed", failed["code"], name)
		require.Contains(t, failed["payload"].(map[string]any)["feedback"], strings.TrimSpace(name)) //nolint:forcetypeassert // the schema of the event
	}
}

// The event of the text has the object twice: as the content, and as what was found in it.
func TestTextWithManyValuesCanBeReadByTheNextWorker(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	many := slices.Repeat([]any{json.Number("0")}, events.MaxNodes-1000)
	m := k.deliver("m1", "Critic", map[string]any{"title": "Shop", "many": many})
	require.NotNil(t, k.of("m1", events.RecordText))
	k.handled(again(m))
	require.Empty(t, k.deadReasons())
}
