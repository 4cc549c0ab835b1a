package handlers_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/subjects"
)

// around publishes what was put aside as the workers' timers do, and returns what the inbound stream has then.
func (k *kit) around(timers *handlers.Timers, d handlers.Deferral) nats.Header {
	k.t.Helper()
	d.At = time.Now()
	require.NoError(k.t, handlers.DeferMessages(k.js, k.space)(k.t.Context(), d))
	_, due, ok := k.space.InTimer(d.Subject, d.ID)
	require.True(k.t, ok)
	require.Equal(k.t, handlers.Ack, timers.Handle(k.t.Context(), k.dueNow(k.t, due)).Do)
	stream, err := k.js.Stream(k.t.Context(), k.space.TimersStream())
	require.NoError(k.t, err)
	require.NoError(k.t, stream.Purge(k.t.Context()))
	in, err := k.js.Stream(k.t.Context(), k.space.InStream())
	require.NoError(k.t, err)
	got, err := in.GetLastMsgForSubject(k.t.Context(), d.Subject)
	require.NoError(k.t, err)
	return got.Header
}

// TestMessageWithLargeHeadersKeepsItsAge: also when it is put aside again and again, and it keeps what workers
// read of its sender's headers.
func TestMessageWithLargeHeadersKeepsItsAge(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	own := []string{handlers.HeaderDeferred, handlers.HeaderDeferrals, handlers.HeaderOffers, handlers.HeaderMsgID}
	for name, senders := range map[string]nats.Header{
		"just within the bound": {"Baggage": {strings.Repeat("x", 8000)}},
		"one over the bound":    {"Authorization": {strings.Repeat("x", 9000)}},
		"many":                  {"A": {strings.Repeat("x", 4000)}, "B": {strings.Repeat("x", 4000)}, "C": {strings.Repeat("x", 4000)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			first := time.Now()
			h, aside := k.bounded(k.without)
			for i := range uint64(3) {
				m := k.message(2+i, 1)
				m.Stored, m.Header = first, nats.Header{subjects.HeaderReply: {"_INBOX.x"}, "traceparent": {trace}, nats.MsgIdHdr: {"id"}}
				maps.Copy(m.Header, senders)
				h.Handle(t.Context(), m)
			}
			require.Len(t, aside.all, 1)
			timers := k.timers()
			for round := range 2 {
				header := k.around(timers, aside.all[round])
				require.Equal(t, strconv.Itoa(round+1), header.Get(handlers.HeaderDeferrals))
				for _, name := range own {
					require.NotEmpty(t, header.Get(name), name)
				}
				require.Equal(t, first.UTC().Format(time.RFC3339Nano), header.Get(handlers.HeaderDeferred))
				require.Equal(t, "id", header.Get(handlers.HeaderMsgID))
				require.Equal(t, "_INBOX.x", header.Get(subjects.HeaderReply))
				require.Equal(t, trace, header.Get("traceparent"))
				size := 0
				for name, values := range header {
					size += len(name) + len(strings.Join(values, ""))
				}
				require.Less(t, size, 10<<10)
				m := k.again(aside.all[round], uint64(10+round))
				m.Header = header
				require.Equal(t, handlers.Ack, h.Handle(t.Context(), m).Do)
			}
		})
	}
}

// TestHeaderMakesNoLateAnswerOneInTime: whoever may answer may write headers, but not publish on the subjects on
// which workers publish what was put aside.
func TestHeaderMakesNoLateAnswerOneInTime(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{events.KindToolCallResponse, events.KindUIToolResponse, events.KindUserInputSubmit} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			owner := k.asker("asks", "")
			owner.ask("1", over)
			m := k.says(3, owner.question("1"), yes())
			m.Subject = k.space.In("default", kind, "app", "WF", "chat")
			m.Header.Set(handlers.HeaderDeferred, time.Now().Add(-time.Hour).Format(time.RFC3339Nano))
			m.Header.Set(handlers.HeaderDeferrals, "1")
			require.Equal(t, events.VerdictExpired, k.handled(m).Code)
		})
	}
}
