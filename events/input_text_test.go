package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestInputTextIsWhatAPersonTyped(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`"x"`: "x", `123`: "123", `1.50`: "1.50", `true`: "true", `null`: "", `{"text":"a"}`: "a", `{"content":"b","n":1}`: "b",
		`{"status":"dismissed"}`: "", `{}`: "",
	} {
		value, err := events.Decode([]byte(answer))
		require.NoError(t, err)
		text, ok := events.InputText(value)
		require.True(t, ok, answer)
		require.Equal(t, want, text, answer)
	}
	for _, answer := range []string{`{"x":1}`, `{"text":1}`, `{"status":"ok","x":1}`, `[]`, `["a"]`} {
		value, err := events.Decode([]byte(answer))
		require.NoError(t, err)
		_, ok := events.InputText(value)
		require.False(t, ok, answer)
	}
}
