package variables_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// decided is message n, with a decision of so many bytes.
func decided(n, size int) variables.Message {
	return variables.Message{
		ID: fmt.Sprintf("m%d", n), Seq: uint64(n + 1), Agent: "A",
		Handoff: func(c variables.Chat) json.RawMessage {
			if c.Refused != "" {
				size = 0
			}
			return json.RawMessage(fmt.Sprintf(`{"n":%d,"refused":%q,"pad":%q}`, n, c.Refused, strings.Repeat("x", size)))
		},
	}
}

func TestDecisionsHaveSeparateRoomInTheDocument(t *testing.T) {
	t.Parallel()
	docs := &memory{map[string][]byte{}, map[string]uint64{}}
	v := variables.NewIn(docs)
	const limit = 512 << 10
	require.NoError(t, v.Merge(t.Context(), "app", "chat", 1, variables.Delta{Set: map[string]any{"big": strings.Repeat("x", limit-64)}}))
	for n := range 60 {
		first, err := v.Apply(t.Context(), "app", "chat", decided(n, 4<<10))
		require.NoError(t, err)
		again, err := v.Apply(t.Context(), "app", "chat", decided(n, 0))
		require.NoError(t, err)
		require.Equal(t, string(first.Handoff), string(again.Handoff), "decided once")
		require.LessOrEqual(t, len(docs.data[subjects.ContextKey("app", "chat")]), limit+128<<10)
	}
	require.ErrorContains(t, v.Merge(t.Context(), "app", "chat", 999, variables.Delta{Set: map[string]any{"more": strings.Repeat("x", 128)}}), "is the most")
}

func TestDecisionThatIsTooLargeIsRefusedAndAnotherIsStored(t *testing.T) {
	t.Parallel()
	v := variables.NewIn(&memory{map[string][]byte{}, map[string]uint64{}})
	for range 2 {
		result, err := v.Apply(t.Context(), "app", "chat", decided(1, 1<<20))
		require.NoError(t, err)
		require.Contains(t, string(result.Handoff), "is the most")
	}
}

func TestChangesThatAreRefusedAreNeverMade(t *testing.T) {
	t.Parallel()
	v := variables.NewIn(&memory{map[string][]byte{}, map[string]uint64{}})
	m := decided(1, 10)
	m.Steps = []bindings.Step{{Variable: "small", Value: true}, {Variable: "large", Value: strings.Repeat("x", 1<<20)}}
	first, err := v.Apply(t.Context(), "app", "chat", m)
	require.NoError(t, err)
	require.NotEmpty(t, first.Refused)
	require.Empty(t, first.Updates)
	m.Steps = m.Steps[:1]
	again, err := v.Apply(t.Context(), "app", "chat", m)
	require.NoError(t, err)
	require.Equal(t, first, again, "decided once")
	vars, err := v.Load(t.Context(), "app", "chat", variables.Layers{})
	require.NoError(t, err)
	require.Empty(t, vars)
}

func TestHandoffIsDecidedInTheStepThatMergesTheChangesOfATool(t *testing.T) {
	t.Parallel()
	docs := &memory{map[string][]byte{}, map[string]uint64{}}
	v := variables.NewIn(docs)
	key := subjects.ContextKey("app", "chat")
	var staged []variables.Change
	for n := range 65 { // one more than are kept
		c := variables.Change{Delta: variables.Delta{Set: map[string]any{"built": json.Number(strconv.Itoa(n))}}, Seq: uint64(n + 2)}
		require.NoError(t, v.Stage(t.Context(), "app", "chat", c))
		staged = append(staged, c)
	}
	before := docs.rev[key]
	m := decided(0, 0)
	m.Tool, m.Changed = &staged[0], true
	m.Handoff = func(c variables.Chat) json.RawMessage { return json.RawMessage(fmt.Sprint(c.Values["built"])) }
	result, err := v.Apply(t.Context(), "app", "chat", m)
	require.NoError(t, err)
	require.Equal(t, "0", string(result.Handoff))
	require.Equal(t, before+1, docs.rev[key])
	require.NoError(t, v.Merge(t.Context(), "app", "chat", staged[0].Seq, staged[0].Delta))
	require.Equal(t, before+1, docs.rev[key], "it is merged")
}
