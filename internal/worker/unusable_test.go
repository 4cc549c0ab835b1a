package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A number, a text or a time stamp that cannot be taken costs the turn its tool, not its answer.
func TestTurnThatNamesItsChatIsAnsweredWhateverElseIsWrongWithIt(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, oneturn.Config{Workflows: "../../testdata/mozaiks/workflows", BindingGrace: time.Millisecond})
	c, nc := client(t, s), s.Connect()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	dead, err := nc.SubscribeSync(space.DeadSubjects())
	require.NoError(t, err)
	publish := func(key, chat, data, more, stamp string) oneturn.TurnID {
		body := fmt.Sprintf(`{"type":"chat.structured_output_ready","data":{"agent":"S","model_name":"B1","structured_data":%s,"auto_tool_mode":true,"turn_idempotency_key":%q,`+
			`"context":{"chat_id":%q,"workflow_name":"WF"%s}},"timestamp":%s}`, data, key, chat, more, stamp)
		_, err := nc.Request(space.In(subjects.DefaultPool, events.KindStructuredOutputReady, "default", "WF", "c"), []byte(body), 5*time.Second)
		require.NoError(t, err)
		return oneturn.TurnID{App: "default", Chat: chat, Turn: key}
	}
	for _, good := range []struct{ key, more, stamp string }{
		{"naive", "", `"2099-01-01T00:00:00"`}, {"epoch", "", "1795867200.25"}, {"blank", "", `"2026-11-28 12:00:00"`}, {"sequence", `,"turn_sequence":"3"`, "null"},
	} {
		r := await(t, c, publish(good.key, "c", `{"name":"x"}`, good.more, good.stamp))
		require.Empty(t, r.Code, good.key)
	}
	for _, bad := range []struct{ key, data, more, stamp, want string }{
		{"nan", `{"name":NaN}`, "", "null", `cannot be read at "/name"`},
		{"half-emoji", `{"name":"cut \ud83d"}`, "", "null", "lone surrogate"},
		{"large", `{"name":1e999}`, "", "null", "exponent over 308"},
		{"variables", `{"name":"x"}`, `,"context_variables":7`, "null", "context.context_variables is a number: expected an object"},
		{"stamp", `{"name":"x"}`, "", `"today"`, "timestamp is a string: expected a time such as"},
	} {
		for range 2 {
			id := publish(bad.key, "c", bad.data, bad.more, bad.stamp)
			r := await(t, c, id)
			require.Equal(t, events.CodeValidationFailed, r.Code, bad.key)
			require.Contains(t, r.Content, bad.want, bad.key)
		}
	}
	nan := await(t, c, oneturn.TurnID{App: "default", Chat: "c", Turn: "nan"})
	require.Contains(t, object(t, nan.Payload)["feedback"], `/name: expected JSON that every reader takes`)
	_, err = dead.NextMsg(100 * time.Millisecond)
	require.Error(t, err, "none of them is a dead letter")

	publish("foreign", "other", `{"name":NaN}`, "", "null")
	m, err := dead.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "subject_mismatch", m.Header.Get("Oneturn-Reason"), "rights on subjects are rights on chats")
}
