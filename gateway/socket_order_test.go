package gateway_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
)

func TestMessagesOfASocketAreStoredInTheOrderInWhichTheyWereSent(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	var want, acked, stored []string
	for i := range 20 {
		id := fmt.Sprintf("m%02d", i)
		want = append(want, id)
		s.send(map[string]any{"type": "user.input.submit", "text": id, "message_id": id})
	}
	for len(acked) < len(want) || len(stored) < len(want) {
		f, err := s.read()
		require.NoError(t, err)
		switch f.Type {
		case "ack.input":
			acked = append(acked, text(f.Data["message_id"]))
		case "chat.user_message":
			stored = append(stored, text(f.Data["message_id"]))
		}
	}
	require.Equal(t, want, acked)
	require.Equal(t, want, stored)
}

func TestMessagesOfASocketAreStoredAfterItsClientLeft(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	reader := g.socket("ada", "c", "")
	reader.until(boundaryType)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	for i := range 5 {
		s.send(map[string]any{"type": "user.input.submit", "text": "x", "message_id": strconv.Itoa(i)})
	}
	require.NoError(t, s.conn.Close(websocket.StatusNormalClosure, ""))
	for i := range 5 {
		f, _ := reader.until("chat.user_message")
		require.Equal(t, strconv.Itoa(i), f.Data["message_id"])
	}
}

func TestMessageThatCouldNotBePublishedIsNotOvertaken(t *testing.T) {
	t.Parallel()
	g := open(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	js, err := jetstream.New(g.nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "ONETURN_IN"))
	for i := range 3 {
		s.send(map[string]any{"type": "user.input.submit", "text": "x", "message_id": strconv.Itoa(i)})
	}
	code, reason, frames := s.closed()
	require.Equal(t, websocket.StatusTryAgainLater, code)
	require.Equal(t, "unavailable", reason)
	require.Len(t, frames, 1)
	require.Equal(t, "0", frames[0].Data["message_id"])
	require.EqualValues(t, http.StatusServiceUnavailable, frames[0].Data["status"])
	require.Contains(t, frames[0].Data["message"], "try again")
}

func TestMessageThatIsTooManyIsNotOvertaken(t *testing.T) {
	t.Parallel()
	g := openShopWith(t, func(o *gateway.Options) { o.Limits = gateway.Limits{Rate: 4, Burst: 2} })
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	messages := []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"}
	send := func(id string) {
		s.send(map[string]any{"type": "user.input.submit", "text": id, "message_id": id})
	}
	for _, id := range messages { // more than it may send at the same time
		send(id)
	}
	refused := 0
	var stored []string
	for len(stored) < len(messages) {
		f, err := s.read()
		require.NoError(t, err)
		switch f.Type {
		case "error": // it is sent again when it is known that it was refused
			require.Equal(t, "rate_limited", f.Data["code"])
			refused++
			send(text(f.Data["message_id"]))
		case "chat.user_message":
			stored = append(stored, text(f.Data["message_id"]))
		}
	}
	require.Positive(t, refused)
	require.Equal(t, messages, stored)
}

func TestMessagesAreTakenAgainWhenTheClientHasGivenUpARefusedOne(t *testing.T) {
	t.Parallel()
	g := openShopWith(t, limited)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	for i := range 3 {
		s.send(map[string]any{"type": "user.input.submit", "text": "x", "message_id": strconv.Itoa(i)})
	}
	s.until("error")
	for { // without sending the refused one
		s.send(map[string]any{"type": "user.input.submit", "text": "x", "message_id": "next"})
		for {
			f, err := s.read()
			require.NoError(t, err)
			if f.Type == "ack.input" && f.Data["message_id"] == "next" {
				return
			}
			if f.Type == "error" {
				break
			}
		}
	}
}

func TestMessagesArePublishedWhileNoWorkerRuns(t *testing.T) {
	t.Parallel()
	g := open(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	for i := range 4 {
		s.send(map[string]any{"type": "user.input.submit", "text": "x", "message_id": strconv.Itoa(i)})
	}
	for i := range 4 {
		f, _ := s.until("ack.input")
		require.Equal(t, strconv.Itoa(i), f.Data["message_id"])
		require.Equal(t, "published", f.Data["code"])
		require.EqualValues(t, http.StatusAccepted, f.Data["status"])
	}
	t.Cleanup(g.runWorker())
	for range 4 {
		s.until("chat.user_message")
	}
}
