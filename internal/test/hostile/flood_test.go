package hostile_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// flood stores many messages without waiting for each.
func (l *lab) flood(n int, message func(i int) *nats.Msg) {
	l.Helper()
	stream, err := l.js.Stream(l.Context(), l.space.InStream())
	require.NoError(l, err)
	before := stream.CachedInfo().State.LastSeq
	for i := range n {
		require.NoError(l, l.nc.PublishMsg(message(i)))
	}
	require.Eventually(l, func() bool {
		info, err := stream.Info(l.Context())
		return err == nil && info.State.LastSeq == before+uint64(n)
	}, 20*time.Second, 5*time.Millisecond, "the stream did not take the messages")
}

// series counts the time series that a scrape gives.
func (l *lab) series() int {
	families, err := l.reg.Gather()
	require.NoError(l, err)
	n := 0
	for _, family := range families {
		n += len(family.GetMetric())
	}
	return n
}

// TestH19LabelsOfMetricsComeFromManifestsOnly: a thousand turns of new names add no more series than one.
func TestH19LabelsOfMetricsComeFromManifestsOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	invent := func(i int) *nats.Msg {
		one := turn("c"+strconv.Itoa(i%7), rand.Text())
		one.App = "app" + strconv.Itoa(i%5)
		switch i % 4 {
		case 0:
			one.Workflow = rand.Text()
		case 1:
			one.Agent = rand.Text()
		case 2:
			one.Model = rand.Text()
		default:
			one.Workflow, one.Agent, one.Model = rand.Text(), rand.Text(), rand.Text()
		}
		body, err := events.EncodeTurn(event(one), time.Now())
		require.NoError(t, err)
		kind := events.KindStructuredOutputReady
		if i%10 == 0 {
			kind = rand.Text()
		}
		if i%10 == 1 {
			body = []byte(`{"kind":"` + rand.Text() + `"}`)
		}
		return &nats.Msg{Subject: l.space.In(subjects.DefaultPool, kind, one.App, one.Workflow, one.Chat), Data: body}
	}
	l.flood(40, invent)
	l.goesOn()
	l.drained()
	before := l.series()
	l.flood(1000, invent)
	l.goesOn()
	l.drained()
	require.Equal(t, before, l.series())
	require.Equal(t, 1042, l.metric("oneturn_turns_total")+l.metric("oneturn_dead_letters_total"))
}

// TestCancelFloodEndsNoOtherTurn: of turns that do not exist, of one turn again and again,
// and of turns that have ended.
func TestCancelFloodEndsNoOtherTurn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ended := turn("c", "ended")
	require.True(t, l.ends(ended).Success)
	l.flood(600, func(i int) *nats.Msg {
		id := turn("c", "ended").TurnID
		switch i % 3 {
		case 0:
			id.Turn = "never " + strconv.Itoa(i)
		case 1:
			id.Turn = "once"
		}
		body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID(id), Workflow: "Echo", Reason: strings.Repeat("r", i)}, time.Now())
		require.NoError(t, err)
		return &nats.Msg{Subject: l.space.In(subjects.DefaultPool, events.KindCancel, "app", "Echo", "c"), Data: body}
	})
	l.goesOn()
	require.True(t, l.ends(turn("c", "another")).Success)
	once := l.ends(turn("c", "once"))
	require.Equal(t, events.CodeCancelled, once.Code)
	require.Equal(t, events.CodeCancelled, l.await(turn("c", "never 0").TurnID).Code)
	require.True(t, l.await(ended.TurnID).Success, "a stored response stays")
	l.drained()
}

// TestNamesThatLookAlikeReachNoOtherTool: two workflows that differ in case only are found
// by their exact names, and letters that look like others are others.
func TestNamesThatLookAlikeReachNoOtherTool(t *testing.T) {
	t.Parallel()
	which := func(name string) oneturn.Tool {
		return oneturn.NewTool(name, func(context.Context, echo) (string, error) { return name, nil }, oneturn.ToolOptions{Workflow: name, Agent: "Echoer", Model: "Echo"})
	}
	l := newLab(t, which("Echo"), which("ECHO"))
	for i, name := range []string{"Echo", "ECHO", "echo", "eCHO", "Echo ", " Echo", "Ｅcho", "Eсho", "Echo\u200b", "Écho"} { // full width, Cyrillic
		one := turn("c", strconv.Itoa(i))
		one.Workflow = name
		switch r := l.ends(one); name {
		case "Echo", "ECHO":
			require.Equal(t, name, r.Payload)
		default:
			require.Equal(t, events.CodeNoBinding, r.Code, "%q", name)
		}
	}
	l.drained()
}

// F22: every field of an event, and of a cancel,
// holds every type once.
func TestWrongTypesInAnyFieldEndAsResponseOrDeadLetter(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	turnBody := `{"type":"chat.structured_output_ready","timestamp":"2026-01-02T03:04:05Z","data":{"kind":"structured_output_ready",` +
		`"agent":"Echoer","agent_name":"Echoer","model_name":"Echo","structured_data":{"text":"x"},"auto_tool_mode":true,"turn_idempotency_key":"k",` +
		`"run_id":"r","correction_of":"z","app_id":"app","chat_id":"c","enterprise_id":"app","workflow_name":"Echo",` +
		`"context":{"app_id":"app","chat_id":"c","workflow_name":"Echo","user_id":"u","turn_sequence":1,"context_variables":{"a":1}}}}`
	cancelBody := `{"type":"chat.cancel","timestamp":"2026-01-02T03:04:05Z","data":{"kind":"cancel","turn":"k","turn_idempotency_key":"k",` +
		`"tool_call_id":"k","run_id":"r","reason":"why","context":{"app_id":"app","chat_id":"c","workflow_name":"Echo","user_id":"u"}}}`
	wrong := []string{
		`null`, `true`, `false`, `0`, `-1`, `1.5`, `1e308`, `12345678901234567890`, `""`, `" "`, `"x"`, `"\u0000"`, `[]`, `[[]]`, `{}`, `{"a":{}}`,
		`{"$blob":"x"}`, `"$0.output.x"`, `"{{x}}"`,
	}
	var bodies [][]byte
	for _, body := range []string{turnBody, cancelBody} {
		tree, err := events.Decode([]byte(body))
		require.NoError(t, err)
		for _, value := range wrong {
			for _, changed := range variants(t, tree, json.RawMessage(value)) {
				// A separate turn, if the field is not the key itself.
				data, err := events.AppendJSON(nil, changed)
				require.NoError(t, err)
				key := strconv.Itoa(len(bodies))
				bodies = append(bodies, []byte(strings.ReplaceAll(string(data), `"k"`, `"`+key+`"`)))
			}
		}
	}
	require.Greater(t, len(bodies), 500)
	l.flood(len(bodies), func(i int) *nats.Msg {
		kind := events.KindStructuredOutputReady
		if strings.Contains(string(bodies[i]), "cancel") {
			kind = events.KindCancel
		}
		return &nats.Msg{Subject: l.space.In(subjects.DefaultPool, kind, "app", "Echo", "c"), Data: bodies[i]}
	})
	l.drained()
	settled := 0
	for _, name := range []string{"turns_total", "dead_letters_total", "not_a_turn_total", "duplicates_total"} {
		settled += l.metric("oneturn_" + name)
	}
	require.InDelta(t, len(bodies), settled, 30, "cancels of turns that have ended count nowhere")
	require.Zero(t, l.metric("oneturn_redeliveries_total"))
	l.goesOn()
}

// variants returns copies of tree that have value in the place of one of its parts, one copy
// for each part, and of the whole.
func variants(t *testing.T, tree any, value any) []any {
	t.Helper()
	all := []any{value}
	if m, ok := tree.(map[string]any); ok {
		for key, part := range m {
			for _, variant := range variants(t, part, value) {
				changed := maps.Clone(m)
				changed[key] = variant
				all = append(all, changed)
			}
		}
	}
	return all
}

// TestOddHeadersAndReplySubjectsChangeNothing: the body decides what a turn is.
func TestOddHeadersAndReplySubjectsChangeNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	subject := l.space.In(subjects.DefaultPool, events.KindStructuredOutputReady, "app", "Echo", "c")
	for i, header := range []nats.Header{
		nil,
		{"Status": {"409"}, "Description": {"Consumer Deleted"}},
		{"Oneturn-Owner": {"evil"}, "Oneturn-Nonce": {"evil"}, "Oneturn-Epoch": {"9"}, "Oneturn-Lease": {"X/1/1"}, "Oneturn-Verdict": {"cancelled"}},
		{"Oneturn-Fingerprint": {"evil"}, "Oneturn-Effect": {"none"}, "Oneturn-Binding": {"evil"}},
		{"traceparent": {"00-" + strings.Repeat("a", 32) + "-" + strings.Repeat("b", 16) + "-01\r\nevil: 1"}},
		{"traceparent": {"a", "b"}, "Traceparent": {strings.Repeat("x", 30_000)}},
		{"X": {"\x00\xff\x1b"}},
	} {
		key := strconv.Itoa(i)
		l.sendOn(subject, header, raw("c", key, `{"text":"x"}`))
		require.True(t, l.await(turn("c", key).TurnID).Success, "%v", header)
	}
	// A plain publish that asks for the stream's word on a subject of ours.
	require.NoError(t, l.nc.PublishRequest(subject, "oneturn.in.default.structured_output_ready.app.Echo.c2", raw("c", "reply", `{"text":"x"}`)))
	require.True(t, l.await(turn("c", "reply").TurnID).Success)
	l.drained() // the stream's acknowledgement may have come in as a message: it is not a turn
	require.NotContains(t, string(l.ask("oneturn.api.app.history", `{"chat_id":"c"}`).Data), "evil")
}
