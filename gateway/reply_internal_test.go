package gateway

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
)

// onePipe is a listener with one connection, which has no buffers: what its client does not read is not written.
type onePipe struct{ conns chan net.Conn }

func (l onePipe) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l onePipe) Close() error   { return nil }
func (l onePipe) Addr() net.Addr { return &net.TCPAddr{} }

// serveOne serves a gateway, which answers with reply, to one client.
func serveOne(t *testing.T, reply http.HandlerFunc) (client net.Conn, ended <-chan struct{}) {
	t.Helper()
	client, server := net.Pipe()
	conns, closed := make(chan net.Conn, 1), make(chan struct{})
	conns <- server
	s := &http.Server{ReadHeaderTimeout: time.Hour, Handler: &Gateway{handler: reply}, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}}
	go func() { _ = s.Serve(onePipe{conns}) }() // ends with the listener
	t.Cleanup(func() { _ = client.Close() })
	t.Cleanup(func() { close(conns) })
	return client, closed
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// replies are those that a client may leave unread.
func replies() map[string]http.HandlerFunc {
	text := strings.Repeat("x", 245<<10)
	sum := sha256.Sum256([]byte(text))
	return map[string]http.HandlerFunc{
		"large": func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, text) },
		"small": func(w http.ResponseWriter, _ *http.Request) { noBlob().write(w) },
		"empty": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"blob": func(w http.ResponseWriter, r *http.Request) {
			blob := events.Blob{Size: len(text), SHA256: hex.EncodeToString(sum[:])}
			_ = sendBlob(r.Context(), w, nil, blob, &store.Piece{Data: []byte(text)})
		},
	}
}

func TestUnreadReplyIsDropped(t *testing.T) {
	t.Parallel()
	for name, reply := range replies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, ended := serveOne(t, reply)
				_, err := io.WriteString(client, request)
				require.NoError(t, err)
				begun := time.Now()
				select {
				case <-ended:
				case <-time.After(time.Hour):
				}
				require.Equal(t, writeTime, time.Since(begun))
			})
		})
	}
}

func TestSlowClientGetsWholeReplies(t *testing.T) {
	t.Parallel()
	for name, reply := range replies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, _ := serveOne(t, reply)
				slow := bufio.NewReaderSize(slowReader{client}, replyPiece)
				for range 2 { // a deadline must not outlast its reply
					<-time.After(time.Minute)
					_, err := io.WriteString(client, request)
					require.NoError(t, err)
					got, err := http.ReadResponse(slow, nil)
					require.NoError(t, err)
					body, err := io.ReadAll(got.Body)
					require.NoError(t, err)
					require.NoError(t, got.Body.Close())
					require.Len(t, body, int(max(0, got.ContentLength)))
				}
			})
		})
	}
}

// slowReader takes a third of the time of a write for each read.
type slowReader struct{ io.Reader }

func (r slowReader) Read(b []byte) (int, error) {
	<-time.After(writeTime / 3)
	return r.Reader.Read(b)
}
