package agui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

func TestStreamHasTheHeadersAndFramesOfServerSentEvents(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	w.Header().Set("Content-Length", "5")
	s, err := agui.NewStream(w, agui.StreamOptions{})
	require.NoError(t, err)
	require.True(t, w.Flushed)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
	require.Equal(t, "no-cache, no-transform", w.Header().Get("Cache-Control"))
	require.Equal(t, "no", w.Header().Get("X-Accel-Buffering"))
	require.Empty(t, w.Header().Get("Content-Length"))

	require.NoError(t, s.Send(&agui.StepStarted{StepName: "a\r\nb"}))
	require.NoError(t, s.KeepAlive())
	require.NoError(t, s.SendWithID("17", &agui.StepFinished{StepName: "a"}, &agui.Custom{Name: "x"}))
	require.NoError(t, s.Send())
	require.Equal(t, `data: {"type":"STEP_STARTED","stepName":"a\r\nb"}`+"\n\n: keep-alive\n\n"+
		`data: {"type":"STEP_FINISHED","stepName":"a"}`+"\n\nid: 17\n"+`data: {"type":"CUSTOM","name":"x","value":null}`+"\n\n", w.Body.String())
}

func TestQueuedEventsAreSentTogether(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s, err := agui.NewStream(w, agui.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Queue("1", &agui.Custom{Name: "a"}))
	require.NoError(t, s.Queue("2", &agui.Custom{Name: "b"}))
	require.Empty(t, w.Body.String())
	require.NoError(t, s.Send(&agui.Custom{Name: "c"}))
	require.Equal(t, 3, strings.Count(w.Body.String(), "data: "))
	require.Contains(t, w.Body.String(), "id: 2\ndata: {\"type\":\"CUSTOM\",\"name\":\"b\"")

	for send, flush := range map[string]func() error{"Flush": s.Flush, "KeepAlive": s.KeepAlive} {
		require.NoError(t, s.Queue("", &agui.Custom{Name: send}))
		require.NotContains(t, w.Body.String(), send)
		require.NoError(t, flush())
		require.Contains(t, w.Body.String(), send)
	}
	require.NoError(t, s.Queue("", &agui.Custom{Name: "large", Value: strings.Repeat("x", 16<<10)}))
	require.Contains(t, w.Body.String(), "large", "the memory of a queue is bounded")
}

// counted is an event that counts how often it is encoded.
type counted struct {
	agui.Event
	times *int
}

func (c counted) MarshalJSON() ([]byte, error) {
	*c.times++
	return c.Event.MarshalJSON()
}

func TestSharedEventIsEncodedOnceForAllStreams(t *testing.T) {
	t.Parallel()
	times := 0
	shared := &agui.Shared{Event: counted{&agui.Custom{Name: "x"}, &times}}
	for range 3 {
		w := httptest.NewRecorder()
		s, err := agui.NewStream(w, agui.StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Send(shared))
		require.Equal(t, `data: {"type":"CUSTOM","name":"x","value":null}`+"\n\n", w.Body.String())
	}
	require.Equal(t, 1, times)
}

func TestSharedEventIsCheckedAndDowngradedAsItself(t *testing.T) {
	t.Parallel()
	in := trace{}.input("1.0")
	v := agui.NewVerifier(in)
	require.Error(t, v.Check(&agui.Shared{Event: &agui.TextMessageEnd{MessageID: "m"}}))
	require.NoError(t, v.Check(&agui.Shared{Event: started()}))
	cancelled := &agui.Shared{Event: finished(agui.Cancelled())}
	require.Same(t, cancelled, agui.Downgrade(cancelled, in.Peer()))
	require.Equal(t, agui.TypeRunError, agui.Downgrade(cancelled, agui.Peer{}).Type())
	succeeded := &agui.Shared{Event: finished(nil)}
	require.Same(t, succeeded, agui.Downgrade(succeeded, agui.Peer{}))
}

func TestStreamSendsWhatTheClientCanRead(t *testing.T) {
	t.Parallel()
	events := []agui.Event{&agui.SubagentStarted{SubagentRunID: "s", Name: "n"}, finished(agui.Cancelled()), &agui.SubagentFinished{SubagentRunID: "s"}}
	for peer, want := range map[agui.Peer]string{
		{}:         "id: 3\ndata: {\"type\":\"RUN_ERROR\",\"message\":\"the run was stopped\",\"code\":\"abort\"}\n\n",
		{Major: 1}: `"outcome":{"type":"cancelled"}`,
	} {
		w := httptest.NewRecorder()
		s, err := agui.NewStream(w, agui.StreamOptions{Peer: peer})
		require.NoError(t, err)
		require.NoError(t, s.SendWithID("3", events...))
		require.Contains(t, w.Body.String(), want)
		require.Equal(t, !peer.Before1(), strings.Contains(w.Body.String(), "SUBAGENT"))
	}
}

func TestRefusedEventLeavesTheStreamUsable(t *testing.T) {
	t.Parallel()
	large := &agui.Custom{Name: "x", Value: strings.Repeat("x", agui.MaxEvent)}
	for _, bad := range []agui.Event{
		large, &agui.Custom{Name: "x", Value: json.RawMessage("{")}, &agui.TextMessageEnd{MessageID: "m"},
	} {
		w := httptest.NewRecorder()
		in := trace{}.input("1.0")
		s, err := agui.NewStream(w, agui.StreamOptions{Peer: in.Peer(), Verifier: agui.NewVerifier(in)})
		require.NoError(t, err)
		require.Error(t, s.SendWithID("1", started(), bad, finished(nil)))
		require.Equal(t, 1, strings.Count(w.Body.String(), "data: "))
		require.NotContains(t, w.Body.String(), "id:")
		require.NoError(t, s.Send(&agui.RunError{Message: "internal error"}))
		require.Contains(t, w.Body.String(), "RUN_ERROR")
	}
}

func TestIDsOfFramesCannotBreakTheStream(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"1\ndata: {}", "1\r", "a\x00"} {
		w := httptest.NewRecorder()
		s, err := agui.NewStream(w, agui.StreamOptions{})
		require.NoError(t, err)
		require.Error(t, s.SendWithID(id, &agui.Custom{Name: "x"}))
		require.Empty(t, w.Body.String())
	}
}

// broken is a response whose client has gone.
type broken struct{ http.ResponseWriter }

var errGone = errors.New("gone")

func (broken) Write([]byte) (int, error) { return 0, errGone }
func (broken) FlushError() error         { return nil }

func TestErrorOfTheConnectionStays(t *testing.T) {
	t.Parallel()
	s, err := agui.NewStream(broken{httptest.NewRecorder()}, agui.StreamOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Send(&agui.Custom{Name: "x"}), errGone)
	require.ErrorIs(t, s.KeepAlive(), errGone)
	require.ErrorIs(t, s.Send(), errGone)
}

func TestWriterThatCannotFlushIsRefused(t *testing.T) {
	t.Parallel()
	_, err := agui.NewStream(struct{ http.ResponseWriter }{httptest.NewRecorder()}, agui.StreamOptions{})
	require.ErrorIs(t, err, http.ErrNotSupported)
}

// serve runs a handler, and returns its address.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

func TestHeadersAndEventsArriveImmediately(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		s, err := agui.NewStream(w, agui.StreamOptions{})
		for range next {
			err = errors.Join(err, s.Send(&agui.Custom{Name: "x"}))
		}
		if err != nil {
			t.Error(err)
		}
	})
	response, err := http.Get(url) //nolint:noctx // a test
	require.NoError(t, err)
	defer response.Body.Close()
	require.Empty(t, response.Header.Get("Content-Length"))
	line := make([]byte, len("data: {\"type\":\"CUSTOM\",\"name\":\"x\",\"value\":null}\n\n"))
	for range 3 {
		next <- struct{}{}
		_, err = io.ReadFull(response.Body, line)
		require.NoError(t, err)
	}
	close(next)
	rest, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Empty(t, rest)
}

// open opens a connection with a small buffer, sends a request, and reads nothing.
func open(t *testing.T, url string) *net.TCPConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	tcp, ok := conn.(*net.TCPConn)
	require.True(t, ok)
	require.NoError(t, tcp.SetReadBuffer(256<<10))
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	return tcp
}

func TestClientThatReadsSlowlyGetsALargeEvent(t *testing.T) {
	t.Parallel()
	const timeout, size = 700 * time.Millisecond, 7 << 20
	sent := make(chan error, 1)
	var took time.Duration
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		s, err := agui.NewStream(w, agui.StreamOptions{Write: agui.WriteOptions{Timeout: timeout}})
		begun := time.Now()
		err = errors.Join(err, s.Send(&agui.Custom{Name: "x", Value: strings.Repeat("x", size)}))
		took = time.Since(begun)
		sent <- err
	})
	conn := open(t, url)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	buffer := make([]byte, 128<<10)
	for got := 0; got < size; {
		<-tick.C
		n, err := io.ReadFull(conn, buffer[:min(len(buffer), size-got)])
		require.NoError(t, err)
		got += n
	}
	require.NoError(t, <-sent)
	require.Greater(t, took, timeout, "no client was slow")
}

func TestClientThatDoesNotReadDoesNotDelayTheEndOfTheStream(t *testing.T) {
	t.Parallel()
	ended, writing := make(chan error, 1), make(chan struct{})
	done, cancel := context.WithCancel(t.Context())
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		s, err := agui.NewStream(w, agui.StreamOptions{Write: agui.WriteOptions{Timeout: time.Hour, Context: done}})
		close(writing)
		event := &agui.Custom{Name: "x", Value: strings.Repeat("x", 7<<20)}
		for i := 0; err == nil && i < 30; i++ {
			err = s.Send(event)
		}
		ended <- err
	})
	open(t, url)
	<-writing
	cancel()
	var timeout net.Error
	require.ErrorAs(t, <-ended, &timeout)
	require.True(t, timeout.Timeout())
}

func TestClientThatDoesNotReadEndsTheStream(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		s, err := agui.NewStream(w, agui.StreamOptions{Write: agui.WriteOptions{Timeout: 50 * time.Millisecond}})
		event := &agui.Custom{Name: "x", Value: string(bytes.Repeat([]byte("x"), 1<<20))}
		for i := 0; err == nil && i < 200; i++ {
			err = s.Send(event)
		}
		ended <- err
	})
	open(t, url)
	var timeout net.Error
	require.ErrorAs(t, <-ended, &timeout)
	require.True(t, timeout.Timeout())
}
