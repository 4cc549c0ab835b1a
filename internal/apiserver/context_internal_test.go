package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
)

func TestContextVariablesThatDoNotFitAreNamedWithTheirSizes(t *testing.T) {
	t.Parallel()
	values := map[string]any{"small": "<b>", "large": strings.Repeat("x", 2000), "none": nil}
	for i := range 20 {
		values[fmt.Sprintf("v%02d", i)] = strings.Repeat("y", 100)
	}
	for _, most := range []int{1200, 2000, 3000, 10_000} {
		s := &Server{most: most}
		reply := &api.Context{Chat: "c", Variables: map[string]json.RawMessage{}}
		require.NoError(t, s.fit(reply, values))
		require.LessOrEqual(t, len(encode(reply)), most)
		require.Len(t, values, len(reply.Variables)+len(reply.Omitted))
		require.Equal(t, `"<b>"`, string(reply.Variables["small"]))
		require.Equal(t, "null", string(reply.Variables["none"]))
		if most < 10_000 {
			require.Equal(t, 2002, reply.Omitted["large"])
		} else {
			require.Empty(t, reply.Omitted)
		}
	}
}
