package hostile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

// H22: see docs/faults.md. Whatever it is that keeps them from being deferred. The pool has places, and
// another tenant's turns run.
func TestAnswersThatCannotBeDeferredTakeNoPlaces(t *testing.T) {
	t.Parallel()
	const n, share = 600, 156 // of a tenant
	for name, one := range map[string]struct {
		ids, msgID string
	}{
		"a workflow that no id gives": {"app.Ec!ho.c", ""},
		"a chat that no id gives":     {"app.Echo." + strings.Repeat("c", 200), ""},
		"a longest message id":        {"app.Echo.c", strings.Repeat("x", 65_300)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := oneturntest.NewServer(t)
			l := newLabOn(t, server, oneturn.Config{Tools: []oneturn.Tool{echoTool()}})
			l.flood(n, func(i int) *nats.Msg {
				header := nats.Header{}
				if one.msgID != "" {
					header.Set(nats.MsgIdHdr, fmt.Sprintf("%06d", i)+one.msgID)
				}
				return &nats.Msg{
					Subject: "oneturn.in.default.tool_call_response." + one.ids, Header: header,
					Data: fmt.Appendf(nil, `{"kind":"tool_call_response","tool_call_id":"n%d/1","response":1,"context":{"app_id":"app","chat_id":"c"}}`, i),
				}
			})
			require.Eventually(t, func() bool {
				c, err := l.js.Consumer(t.Context(), l.space.InStream(), l.space.WorkerConsumer("default"))
				if err != nil {
					return false
				}
				info := c.CachedInfo()
				return info.NumPending == 0 && info.NumAckPending <= share
			}, 60*time.Second, 20*time.Millisecond)
			other := turn("b", "b1")
			other.App = "beta"
			require.True(t, l.ends(other).Success)
		})
	}
}
