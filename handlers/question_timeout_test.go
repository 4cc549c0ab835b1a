package handlers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// TestTimeToAnswerBeginsByTheClockOfTheServer: the worker's own is an hour slow.
func TestTimeToAnswerBeginsByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout time.Duration
		fails   error
		asked   int           // times that the server was
		ends    time.Duration // by the worker's clock
	}{
		"with a timeout":               {timeout: time.Minute, asked: 1, ends: time.Hour + time.Minute},
		"with more than the turn has":  {timeout: 30 * 24 * time.Hour, asked: 1, ends: time.Hour + 7*24*time.Hour},
		"without one it is not read":   {ends: time.Hour + 7*24*time.Hour},
		"as read last without a reply": {timeout: time.Minute, fails: errors.New("no responders"), asked: 1, ends: time.Hour + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := toolFunc(func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				_, err := call.Host.Ask(ctx, tools.Question{Name: "q", Timeout: c.timeout})
				return tools.Result{}, err
			})
			inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
				t.Helper()
				begin, asked := time.Now(), 0
				o.ServerTime = func(context.Context) (time.Time, error) {
					if asked++; asked == 1 { // how old the message is
						return time.Now().Add(time.Hour), nil
					}
					return time.Now().Add(time.Hour), c.fails
				}
				done := o.handle(o.turn())
				require.Len(t, o.scheduled, 1)
				require.Equal(t, c.ends, o.scheduled[0].ExpiresAt.Sub(begin))
				require.Equal(t, 1+c.asked, asked)
				pass(time.Minute / 2) // it parks
				require.Equal(t, inbound.Ack, settled(t, done).Do)
				o.answer("q", "yes")
				require.Equal(t, 1+c.asked, asked, "the run after it has the stored end")
			})
		})
	}
}
