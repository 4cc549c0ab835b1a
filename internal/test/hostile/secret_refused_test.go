package hostile_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/tool"
)

// TestNamesOfARefusedSecretAnswerAreNotShown: a form of names and secrets is filled in the wrong
// way round, and a field of the wrong shape is refused.
func TestNamesOfARefusedSecretAnswerAreNotShown(t *testing.T) {
	t.Parallel()
	c := harness.NewCanaries()
	keys, err := secrets.LoadOrMake(filepath.Join(t.TempDir(), "k"))
	require.NoError(t, err)
	ask := func(ctx context.Context, _ echo) (string, error) {
		_, err := tool.Ask[map[string]map[string]string](ctx, tool.Question{Name: "key", Payload: map[string]any{"label": "your keys"}, Secret: true})
		return "thanks", err
	}
	l := newLabOf(t, oneturn.Config{
		SecretKeys: keys, Tools: []oneturn.Tool{oneturn.NewTool("ask", ask, oneturn.ToolOptions{Workflow: "Echo", Agent: "Echoer", Model: "Echo", Effect: oneturn.Replay})},
	})
	rejected := make(chan *nats.Msg, 64)
	_, err = l.nc.ChanSubscribe("oneturn.live.app.c."+events.KindToolCallRejected, rejected)
	require.NoError(t, err)
	l.publish(turn("c", "t"))
	w := l.asked("c", "key")
	wrong := []any{
		map[string]any{c.Of("name"): []any{1}},
		map[string]any{"a": map[string]any{c.Of("inner"): []any{c.Of("value")}}},
		map[string]any{c.Of("both"): map[string]any{c.Of("inner"): 1.5, "x": map[string]any{}}},
		[]any{map[string]any{c.Of("list"): 1}},
		c.Of("text"),
	}
	for _, value := range wrong {
		v := l.answers(w, value)
		require.Equal(t, events.AnswerInvalid, v.Code)
		require.NotEmpty(t, v.Errors)
		require.Empty(t, c.In(fmt.Sprint(v)), "the verdict")
		select {
		case m := <-rejected:
			require.False(t, c.Within(m.Data), "chat.tool_call_rejected: %s", m.Data)
		case <-time.After(10 * time.Second):
			require.Fail(t, "the rejection is not published")
		}
	}
	require.Equal(t, events.AnswerAccepted, l.answers(w, map[string]any{"a": map[string]any{c.Of("name"): c.Of("value")}}).Code)
	r := l.await(oneturn.TurnID{App: "app", Chat: "c", Turn: "t"})
	require.True(t, r.Success, r.Content)
	for name, text := range map[string]string{"log": l.log.String(), "metrics": l.metrics(), "dead letters": l.dump(l.space.DeadStream()), "journal": l.dump(l.space.TurnsStream())} {
		require.False(t, c.Within([]byte(text)), "%s: %s", name, text)
	}
}
