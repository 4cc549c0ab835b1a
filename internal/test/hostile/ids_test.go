package hostile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// odd are ids that mean something else to a subject, a path, a JSON or a shell, or look like
// each other.
var odd = []string{
	".", "..", "a.b", "a.*", "a.>", "*", ">", " ", "a b", "-", "--", "=", "==", "=2E", "=2e", "0-x", "%2E", "a/b", `a\b`, `"`, "'",
	"$JS.API.STREAM.PURGE.ONETURN_IN", "$KV.ONETURN_TURNS.e", "_INBOX.x", "null", "true", "12", "012", "1e2", "100", "{}", "[]",
	"App", "APP", "äpp", "a\u0308pp", "日本語", "👩‍👩‍👧", "𝕏", "\ufeffx", "\ufffd", "e", "p", "tool_response", "../../etc/passwd", "$(id)",
	strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat(".", events.MaxIDBytes), strings.Repeat("é", events.MaxIDBytes/2),
}

// TestH13EveryIDIsItsOwnTurnAndNoOtherReaderSeesIt: as tenant, chat, run and turn key.
func TestH13EveryIDIsItsOwnTurnAndNoOtherReaderSeesIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	heard := make(map[string]*nats.Subscription, len(odd))
	for _, id := range odd {
		sub, err := l.nc.SubscribeSync(l.space.EventsOfChat(id, id))
		require.NoError(t, err, id)
		heard[id] = sub
	}
	require.NoError(t, l.nc.Flush())
	for _, id := range odd {
		one := turn(id, id)
		one.App, one.Run, one.Data = id, id, map[string]any{"text": id}
		r := l.ends(one)
		require.True(t, r.Success, id)
		require.Equal(t, []string{id, id, id, id}, []string{r.App, r.Chat, r.Run, r.Turn})
		require.Equal(t, id, object(t, r.Payload)["text"])
		r = l.ends(one)
		require.True(t, r.Success, "a second publish of %q is a duplicate", id)
	}
	l.drained()
	require.Equal(t, len(odd), l.metric("oneturn_turns_total"))
	for id, sub := range heard {
		for _, kind := range []string{events.KindToolCall, events.KindToolResponse} {
			m, err := sub.NextMsg(5 * time.Second)
			require.NoError(t, err, id)
			require.True(t, strings.HasSuffix(m.Subject, "."+kind), m.Subject)
			body, err := events.Parse(m.Data)
			require.NoError(t, err)
			require.Equal(t, id, body.Data["chat_id"])
		}
		pending, _, err := sub.Pending()
		require.NoError(t, err)
		require.Zero(t, pending, "%q hears others", id)
	}
}

// TestH03IDsThatDeceiveAReaderAreRefusedByPublisherAndWorker: with all their bytes.
func TestH03IDsThatDeceiveAReaderAreRefusedByPublisherAndWorker(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, id := range []string{
		"a\x00b", "a\r\nNats-Msg-Id: evil", "a\tb", "\x7f", "\x1b[2K", "\u0085", "\u2028", "\u2029", "\u202egnp.exe", "\u2066x\u2069",
		"\xff", "\xed\xa0\x80", strings.Repeat("x", events.MaxIDBytes+1), strings.Repeat("x", 5000),
	} {
		for name, put := range map[string]func(*oneturn.Turn){
			"app": func(t *oneturn.Turn) { t.App = id }, "chat": func(t *oneturn.Turn) { t.Chat = id },
			"run": func(t *oneturn.Turn) { t.Run = id }, "turn": func(t *oneturn.Turn) { t.Turn = id },
			"workflow": func(t *oneturn.Turn) { t.Workflow = id }, "agent": func(t *oneturn.Turn) { t.Agent = id },
			"model": func(t *oneturn.Turn) { t.Model = id }, "user": func(t *oneturn.Turn) { t.UserID = id },
			"correction": func(t *oneturn.Turn) { t.CorrectionOf = id },
		} {
			one := turn("c", "k")
			put(one)
			_, err := l.client.Publish(t.Context(), one)
			require.ErrorIs(t, err, events.ErrBadArgs, "%s %q", name, id)
			require.Less(t, len(err.Error()), 1024)
		}
		body := []byte(strings.Replace(string(raw("CHAT", "k", `{"text":"x"}`)), "CHAT", jsonText(id), 1))
		l.send(id, nil, body)
		require.Equal(t, string(body), string(l.letter("undecodable").Data()))
	}
	l.goesOn()
	l.drained()
}

// jsonText writes id inside quotes as JSON, without replacing what is not UTF-8.
func jsonText(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c < ' ' {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TestH13BodyDecidesAndAMessageWithAnotherSubjectIsADeadLetter: rights on subjects are rights on
// tenants and chats, so no spelling may get around them.
func TestH13BodyDecidesAndAMessageWithAnotherSubjectIsADeadLetter(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	body := raw("c", "k", `{"text":"x"}`)
	for _, subject := range []string{
		"oneturn.in.default.structured_output_ready.app.Echo.C",
		"oneturn.in.default.structured_output_ready.app.echo.c",
		"oneturn.in.default.structured_output_ready.App.Echo.c",
		"oneturn.in.default.structured_output_ready.*.Echo.c",
		"oneturn.in.default.structured_output_ready.app.*.>",
		"oneturn.in.default.structured_output_ready.app.Echo.=63",
		"oneturn.in.default.structured_output_ready.app.Echo.c.d",
		"oneturn.in.default.structured_output_ready.app.Echo",
		"oneturn.in.default.cancel.app.Echo.c",
		"oneturn.in.default.*.app.Echo.c",
		"oneturn.in.default.\x1b[2K\xff.app.Echo.c",
		"oneturn.in.default." + strings.Repeat("x.", 1000) + "x",
	} {
		l.sendOn(subject, nil, body)
		require.Equal(t, string(body), string(l.letter("subject_mismatch").Data()))
	}
	require.Zero(t, l.metric("oneturn_turns_total"))
	l.goesOn()
	l.drained()
}

// TestH13NumbersAreIDsByTheirSpelling: two spellings of a number are two chats.
func TestH13NumbersAreIDsByTheirSpelling(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, id := range []string{"100", "1e2", "100.0", "-0", "12345678901234567890"} {
		body := strings.Replace(string(raw("CHAT", "k", fmt.Sprintf(`{"text":%q}`, id))), `"CHAT"`, id, 1)
		l.send(id, nil, []byte(body))
		require.Equal(t, id, object(t, l.await(turn(id, "k").TurnID).Payload)["text"])
	}
	l.drained()
}

// TestH15SuppressionByAStolenMsgIDShowsAndCanBeAvoided: a publisher that knows a turn's ids and data
// before it is published, and may publish to the same stream, can have the server drop it as
// a duplicate. The receipt reports it, and a publisher may leave the Msg-Id out. Tenants that
// distrust each other need separate accounts.
func TestH15SuppressionByAStolenMsgIDShowsAndCanBeAvoided(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	victim, err := oneturn.NewClient(l.nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	one := turn("c", "k")
	stolen := events.MsgID(events.KindStructuredOutputReady, events.TurnID(one.TurnID), events.Fingerprint(event(one)))
	other := turn("c", "k")
	other.Data = map[string]any{"text": "other"}
	require.NotEqual(t, stolen, events.MsgID(events.KindStructuredOutputReady, events.TurnID(one.TurnID), events.Fingerprint(event(other))))
	l.sendOn(l.space.In(subjects.DefaultPool, "x", "evil", "x", "x"), nats.Header{nats.MsgIdHdr: {stolen}}, []byte("{}"))
	receipt, err := victim.Publish(t.Context(), one)
	require.NoError(t, err)
	require.True(t, receipt.Duplicate)
	require.True(t, l.ends(one).Success, "published without the Msg-Id")
	l.drained()
}
