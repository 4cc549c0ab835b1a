package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
)

const serviceManifest = `
agents:
  Greeter: {model: Greeting}
models:
  Greeting: {type: object, required: [name], properties: {name: {type: string}}}
tools:
  - {name: greet, agent: Greeter, nats: {subject: greeting.make}, max_attempts: 3, timeout: 200ms, effect: unsafe}
`

// TestServiceThatDiesWhileItsQuestionIsOpenEndsItsCallWithinItsTimeout: the worker is not notified, an unsafe
// call is not parked, and no service accepts the answer. Its time resumes once it has come.
func TestServiceThatDiesWhileItsQuestionIsOpenEndsItsCallWithinItsTimeout(t *testing.T) {
	t.Parallel()
	for name, within := range map[string]string{"answered": "", "expired": `, "timeout": 0.3`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			service := s.Connect()
			var called atomic.Int32
			_, err := service.Subscribe("greeting.make", func(m *nats.Msg) {
				called.Add(1)
				ask := nats.NewMsg(m.Reply)
				ask.Header.Set("Oneturn-Kind", "ask")
				ask.Reply, ask.Data = service.NewInbox(), []byte(`{"name": "who"`+within+`}`)
				_ = service.PublishMsg(ask)
				_ = service.Flush()
				service.Close() // it dies
			})
			require.NoError(t, err)
			require.NoError(t, service.Flush())
			start(t, s, oneturn.Config{Workflows: workflows(t, serviceManifest, ""), ParkAfter: time.Millisecond})
			c := client(t, s)
			one := turn("t1", map[string]any{"name": "Ada"})
			publish(t, c, one)
			if within == "" {
				reply(t, c, questions(t, c, 1)[0].ToolCallID, "Bob")
			}
			r := await(t, c, one.TurnID)
			require.Equal(t, events.CodeTimeout, r.Code)
			require.Contains(t, r.Content, "may or may not have happened")
			require.Equal(t, 1, r.Attempts)
			require.Equal(t, int32(1), called.Load())
			requireDrained(t, s)
		})
	}
}
