package agentjson_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/events"
)

// deviations are the observed texts for which MozaiksAI is wrong, and our answer.
var deviations = map[string]string{
	`{"a":"keep ,} inside"}`:                `{"a":"keep ,} inside"}`,  // MozaiksAI removes the comma from the string
	"```json\n{\"code\":\"```js```\"}\n```": "{\"code\":\"```js```\"}", // a fence in a string ends MozaiksAI's block
	`{"a":NaN}`:                             "null",                    // NaN is not JSON
	`{"outer": {"x":1}, "y": }`:             "null",                    // MozaiksAI takes the inner object for the whole
}

func TestObservedContentGivesTheObservedObjectOrTheRightOne(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/mozaiks/json_extract.txt")
	require.NoError(t, err)
	deviating := 0
	for line := range strings.Lines(string(data)) {
		content, want, ok := strings.Cut(strings.TrimSpace(line), " => ")
		require.True(t, ok, line)
		value, err := events.Decode([]byte(content))
		require.NoError(t, err)
		if text, isText := value.(string); isText {
			if ours, deviates := deviations[text]; deviates {
				want, deviating = ours, deviating+1
			}
		}
		found, err := agentjson.ExtractContent([]byte(content), agentjson.Options{})
		if want == "null" {
			require.ErrorIs(t, err, events.ErrBadArgs, content)
			continue
		}
		require.NoError(t, err, content)
		require.JSONEq(t, want, string(found.JSON), content)
	}
	require.Len(t, deviations, deviating, "a deviation that no observed case shows")
}
