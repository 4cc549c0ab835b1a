package hostile_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
)

// ask sends a request as an attacker writes it and returns the answer.
func (l *lab) ask(subject, body string) *nats.Msg {
	l.Helper()
	m, err := l.nc.Request(subject, []byte(body), 5*time.Second)
	require.NoError(l, err, "%s %.80s", subject, body)
	return m
}

func code(m *nats.Msg) string { return m.Header.Get("Nats-Service-Error-Code") }

func TestRequestsThatMakeNoSenseAreAnsweredAndCostNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.goesOn()
	for _, body := range []string{
		"", "null", "[]", "{", `"x"`, `{"chat_id":1,"turn":"x"}`, `{"chat_id":"","turn":""}`, `{"turn":"x"}`, `{"chat_id":"bystander","from":-1}`,
		`{"chat_id":"bystander","turn":"x","from":1e99}`, strings.Repeat("[", 500_000), `{"a":` + strings.Repeat(`{"a":`, 100_000),
		`{"chat_id":"` + strings.Repeat("x", 900_000), `{"chat_id":"` + strings.Repeat("x", 900_000) + `","turn":"x"}`, "\xff\xfe",
	} {
		for _, verb := range []string{api.VerbTurn, api.VerbHistory} {
			m := l.ask("oneturn.api.app."+verb, body)
			require.Equal(t, "400", code(m), "%s %.80s", verb, body)
			require.Less(t, len(m.Header.Get("Nats-Service-Error")), 512)
		}
	}
	for _, body := range []string{
		`{"chat_id":"*","turn":"*"}`, `{"chat_id":">","turn":">"}`, `{"chat_id":"bystander","turn":"*"}`, `{"chat_id":"bystander","turn":"x.>"}`,
		`{"chat_id":"bystander","run_id":"*","turn":"x"}`, `{"chat_id":"bystander","turn":"x","from":18446744073709551615}`,
		`{"chat_id":"` + strings.Repeat("x", 20_000) + `","turn":"x"}`, `{"chat_id":"x","turn":"x","fingerprint":"*"}`, `{"chat_id":"a\u0000b","turn":"x"}`,
	} {
		for _, verb := range []string{api.VerbTurn, api.VerbHistory} {
			if verb == api.VerbHistory && strings.Contains(body, `"bystander"`) {
				continue // a chat that exists
			}
			m := l.ask("oneturn.api.app."+verb, body)
			require.Empty(t, code(m), "%s %.80s", verb, body)
			require.JSONEq(t, `{"records":[]}`, string(m.Data), "%s %.80s", verb, body)
		}
	}
	m := l.ask("oneturn.api.app.history", `{"chat_id":"bystander","from":18446744073709551615}`)
	require.JSONEq(t, `{"records":[]}`, string(m.Data))
	l.goesOn()
}

// TestRequestSeesItsOwnTenantOnly: a subject that is published to may hold a wildcard, and the
// worker must not take it for one.
func TestRequestSeesItsOwnTenantOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	require.True(t, l.ends(turn("c", "k")).Success)
	for _, app := range []string{"*", "a*", "=2A=", "=2a", "==short"} {
		for verb, body := range map[string]string{api.VerbTurn: `{"chat_id":"c","turn":"k"}`, api.VerbHistory: `{"chat_id":"c"}`} {
			require.Equal(t, "400", code(l.ask("oneturn.api."+app+"."+verb, body)), app)
		}
	}
	for _, app := range []string{"other", "App", "-", "=2A"} {
		require.JSONEq(t, `{"records":[]}`, string(l.ask("oneturn.api."+app+".history", `{"chat_id":"c"}`).Data), app)
	}
	var page api.Page
	require.NoError(t, json.Unmarshal(l.ask("oneturn.api.app.history", `{"chat_id":"c"}`).Data, &page))
	require.Len(t, page.Records, 2)
}

// TestAnswerToARequestBecomesNoRecordEventOrTurn: the answer goes where the request specifies, with
// the rights of the worker.
func TestAnswerToARequestBecomesNoRecordEventOrTurn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	victim := turn("victim", "k")
	replies := []string{
		"$KV.ONETURN_TURNS.e.app.victim.0-k.0.tool_response", "$KV.ONETURN_TURNS.e.app.victim.0-k.0.tool_call",
		"oneturn.events.app.victim.0-k.0.tool_response", "oneturn.in.default.cancel.app.Echo.victim", "oneturn.dead.app.x",
	}
	forged := make(chan *nats.Msg, 100)
	for _, reply := range replies {
		sub, err := l.nc.ChanSubscribe(reply, forged)
		require.NoError(t, err)
		defer sub.Unsubscribe()
		for _, body := range []string{`{"chat_id":"c","turn":"k"}`, "{"} {
			require.NoError(t, l.nc.PublishRequest("oneturn.api.app.turn", reply, []byte(body)))
		}
	}
	require.NoError(t, l.nc.Publish("oneturn.api.app.turn", []byte("{")))
	l.ask("oneturn.api.app.turn", "{") // all before it have been handled
	require.NoError(t, l.nc.Flush())
	require.Empty(t, forged)
	require.True(t, l.ends(victim).Success)
	l.drained()
}

// TestHistoryOfLargeRecordsComesInPagesThatTheServerTakes: every record is reached.
func TestHistoryOfLargeRecordsComesInPagesThatTheServerTakes(t *testing.T) {
	t.Parallel()
	l := newLab(t, deliverTool())
	want := 0
	for i, size := range []int{10, 250_000, 250_000, 60_000, 250_000, 10, 10, 10, 10, 10} {
		one := turn("c", strconv.Itoa(i))
		one.Data = map[string]any{"what": "text", "size": number(strconv.Itoa(size)), "agent_message": strings.Repeat("<", size/2)}
		require.True(t, l.ends(one).Success)
		want += 2
	}
	got, from := 0, uint64(0)
	for range want + 1 {
		var page api.Page
		m := l.ask("oneturn.api.app.history", fmt.Sprintf(`{"chat_id":"c","from":%d}`, from))
		require.NoError(t, json.Unmarshal(m.Data, &page))
		for _, r := range page.Records {
			require.GreaterOrEqual(t, r.Sequence, from)
		}
		got += len(page.Records)
		if from = page.Next; from == 0 {
			break
		}
	}
	require.Equal(t, want, got)
}
