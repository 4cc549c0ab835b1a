package hostile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTenantCannotFloodTheLog: messages that cannot be handled are refused one by one, counted one by one,
// and written about some of them.
func TestTenantCannotFloodTheLog(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const n = 400
	long := strings.Repeat("q", 500)
	for i := range n {
		for subject, body := range map[string]string{
			"structured_output_ready.app.Echo.c": `{"auto_tool_mode":true}`,
			"cancel.app.Echo.c":                  `[`,
			"nothing.app.Echo.c":                 `{"kind":"nothing"}`,
			"tool_call_response.app.Echo.c":      fmt.Sprintf(`{"kind":"tool_call_response","tool_call_id":"%d%s/1","response":1,"context":{"app_id":"other","chat_id":"%s"}}`, i, long, long),
		} {
			_, err := l.js.PublishAsync("oneturn.in.default."+subject, []byte(body))
			require.NoError(t, err)
		}
	}
	<-l.js.PublishAsyncComplete()
	require.Eventually(t, func() bool {
		s, err := l.js.Stream(t.Context(), l.space.InStream())
		return err == nil && s.CachedInfo().State.Msgs == 0
	}, 60*time.Second, 20*time.Millisecond)
	require.InDelta(t, 3*n, l.metric("oneturn_dead_letters_total"), 0)
	text := l.log.String()
	require.Contains(t, text, `level=WARN msg="dead letter"`)
	require.Contains(t, text, `level=INFO msg="answer not accepted"`)
	above := 0
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "level=DEBUG") {
			above++
			require.Less(t, len(line), 1_500)
		}
	}
	require.Less(t, above, 80)
}
