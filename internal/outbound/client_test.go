package outbound_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

// local may reach this machine without TLS.
func local() outbound.Options {
	return outbound.Options{Network: target.Network{AllowHTTP: true, AllowPrivate: loopback()}}
}

func client(t *testing.T, o outbound.Options) *outbound.Client {
	t.Helper()
	c := outbound.New(o)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// post sends a body and returns the answer, or what it failed with in our words.
func post(t *testing.T, c *outbound.Client, url string, headers ...string) (body string, err error) {
	t.Helper()
	ctx := t.Context()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"a":1}`))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return "", outbound.CallError(ctx, "call it", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), outbound.CallError(ctx, "call it", err)
}

func TestPrivateAddressIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	var called atomic.Bool
	s := serve(t, func(http.ResponseWriter, *http.Request) { called.Store(true) })
	_, err := post(t, client(t, outbound.Options{Network: target.Network{AllowHTTP: true}}), s.URL)
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, "loopback address, which is refused")
	require.ErrorContains(t, err, "allow_private")
	require.False(t, tools.IsRetryable(err))
	require.False(t, called.Load())
}

func TestPlainHTTPHasToBeAllowed(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, err := post(t, client(t, outbound.Options{Network: target.Network{AllowPrivate: loopback()}}), s.URL)
	require.ErrorContains(t, err, "allow_http: true")
	_, err = post(t, client(t, local()), s.URL)
	require.NoError(t, err)
}

func TestURLsThatNoRequestMayGoToAreRefused(t *testing.T) {
	t.Parallel()
	c := client(t, local())
	for _, url := range []string{"file:///etc/passwd", "gopher://127.0.0.1/", "http://user:CANARY@127.0.0.1/", "http:///path"} {
		_, err := post(t, c, url)
		require.ErrorContains(t, err, "the URL cannot be used", url)
		require.NotContains(t, err.Error(), "CANARY")
	}
}

// nameServer answers each query for an IPv4 address with the next of the addresses.
func nameServer(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	var done sync.WaitGroup
	t.Cleanup(func() { conn.Close(); done.Wait() })
	done.Go(func() {
		next, buf := 0, make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			name := bytes.IndexByte(buf[12:n], 0) + 13
			question := buf[12 : name+4]
			answer := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			if buf[name+1] == 1 { // type A
				ip := netip.MustParseAddr(addresses[min(next, len(addresses)-1)]).As4()
				next++
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, ip[:]...)
			}
			_, _ = conn.WriteTo(answer, from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestNameThatIsResolvedToAPrivateAddressTheSecondTimeIsRefused(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		called.Add(1)
		w.Header().Set("Connection", "close")
	})
	_, p, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	o := local()
	o.Network.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	o.Resolve = nameServer(t, "127.0.0.1", "127.0.0.2")
	c := client(t, o)
	_, err = post(t, c, "http://rebind.example.:"+p)
	require.NoError(t, err)
	_, err = post(t, c, "http://rebind.example.:"+p)
	require.ErrorContains(t, err, "loopback address, which is refused")
	var shown *events.Error
	require.ErrorAs(t, err, &shown)
	require.NotContains(t, shown.Msg, "127.0.0.2", "what a name resolves to is not for models")
	require.EqualValues(t, 1, called.Load())
}

func TestBodyIsBoundedOnceInflated(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fits":
			_, _ = w.Write(make([]byte, 1<<16))
		case "/large":
			_, _ = w.Write(make([]byte, 1<<16+1))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 512 {
				_, _ = z.Write(make([]byte, 1<<16))
			}
			_ = z.Close()
		case "/encoded":
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "x")
		}
	})
	o := local()
	o.MaxBody = 1 << 16
	c := client(t, o)
	body, err := post(t, c, s.URL+"/fits")
	require.NoError(t, err)
	require.Len(t, body, 1<<16)
	for _, path := range []string{"/large", "/endless", "/bomb"} {
		body, err = post(t, c, s.URL+path)
		require.ErrorIs(t, err, events.ErrTooLarge, path)
		require.LessOrEqual(t, len(body), 1<<16)
	}
	_, err = post(t, c, s.URL+"/encoded")
	require.ErrorContains(t, err, "Content-Encoding")
}

func TestEventsOfAStreamAreBoundedOneByOne(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		event := "data: " + strings.Repeat("x", 50) + "\r\n\r\n"
		if r.URL.Path == "/large" {
			event = "data: " + strings.Repeat("x", 50) + "\r\n"
		}
		_, _ = io.WriteString(w, strings.Repeat(event, 100))
	})
	o := local()
	o.MaxBody = 100
	whole := client(t, o)
	_, err := post(t, whole, s.URL)
	require.ErrorIs(t, err, events.ErrTooLarge, "a client that does not read them one by one")
	o.Events = true
	c := client(t, o)
	body, err := post(t, c, s.URL)
	require.NoError(t, err)
	require.Len(t, body, 6000)
	_, err = post(t, c, s.URL+"/large")
	require.ErrorIs(t, err, events.ErrTooLarge)
}

func TestHeadersOfAnAnswerAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Large", strings.Repeat("x", 1<<17)) })
	_, err := post(t, client(t, local()), s.URL)
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, outbound.Unknown)
}

// raw serves connections byte by byte: what the handler returns is written, and the connection
// is closed.
func raw(t *testing.T, handle func(conn net.Conn)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var done sync.WaitGroup
	t.Cleanup(func() { l.Close(); done.Wait() })
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { defer conn.Close(); handle(conn) })
		}
	})
	return l.Addr().String()
}

func TestRequestThatWasNeverSentIsRetryable(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusing := l.Addr().String()
	require.NoError(t, l.Close())
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	hanging := raw(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)) })
	o := local()
	o.Resolve = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, io.ErrUnexpectedEOF
	}}
	c := client(t, o)
	for url, want := range map[string]string{
		"http://" + refusing:          "connection refused",
		untrusted.URL:                 "certificate signed by unknown authority",
		"https://" + hanging:          "endpoint cannot be reached",
		"http://nobody.example.:8080": "cannot be resolved",
	} {
		_, err := post(t, c, url, "Idempotency-Key", "k")
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, want)
		require.True(t, tools.IsRetryable(err), url)
		_, at, _ := strings.Cut(url, "//")
		var own *events.Error
		require.ErrorAs(t, err, &own)
		require.NotContains(t, own.Msg, at, "the response is for others, too")
		var host *target.HostError
		require.ErrorAs(t, err, &host)
		require.Equal(t, at, host.Host)
	}
}

func TestRequestThatMayHaveArrivedIsNotRetryable(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	addr := raw(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		arrived.Add(1)
	})
	_, err := post(t, client(t, local()), "http://"+addr, "Idempotency-Key", "k")
	require.ErrorContains(t, err, outbound.Unknown)
	require.False(t, tools.IsRetryable(err))
	require.EqualValues(t, 1, arrived.Load())
}

// The transport of net/http sends a request again that names an Idempotency-Key, if the server
// closes a connection that had been used before.
func TestRequestIsSentOnceWhenAUsedConnectionBreaks(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	addr := raw(t, func(conn net.Conn) {
		for {
			if n, err := conn.Read(make([]byte, 4096)); n == 0 || err != nil {
				return
			}
			if arrived.Add(1) > 1 {
				return // in the middle of the second request
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	c := client(t, local())
	body, err := post(t, c, "http://"+addr, "Idempotency-Key", "k")
	require.NoError(t, err)
	require.Equal(t, "ok", body)
	_, err = post(t, c, "http://"+addr, "Idempotency-Key", "k")
	require.ErrorContains(t, err, outbound.Unknown)
	require.False(t, tools.IsRetryable(err))
	require.EqualValues(t, 2, arrived.Load())
}

func TestNoTextOfTheServerGetsIntoAnError(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"CANARY\r\n\r\n", "HTTP/1.1 CANARY\r\n\r\n", "HTTP/1.1 307 x\r\nLocation: http://[CANARY\r\n\r\n", "HTTP/1.1 200 OK\r\nCANARY\r\n\r\n"} {
		addr := raw(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, answer)
		})
		_, err := post(t, client(t, local()), "http://"+addr+"/?key=CANARY")
		require.ErrorIs(t, err, events.ErrToolError)
		require.NotContains(t, err.Error(), "CANARY")
		require.False(t, tools.IsRetryable(err))
	}
}

func TestEndOfTheContextIsATimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
	require.NoError(t, err)
	_, err = client(t, local()).HTTP.Do(req) //nolint:bodyclose // there is none
	err = outbound.CallError(ctx, "call it", err)
	require.ErrorIs(t, err, events.ErrTimeout)
	require.False(t, tools.IsRetryable(err))
}

func TestNothingIsSentForACallThatHasEnded(t *testing.T) {
	t.Parallel()
	require.NoError(t, outbound.Ended(t.Context(), "call it"))
	for cause, code := range map[error]events.Code{events.ErrTimeout: events.CodeTimeout, events.ErrCancelled: events.CodeToolError} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err := outbound.Ended(ctx, "call it")
		require.ErrorIs(t, err, cause)
		require.Equal(t, code, events.CodeOf(err))
		require.Equal(t, code, events.CodeOf(outbound.CallError(ctx, "call it", io.EOF)))
	}
}

func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	o := local()
	o.Resolve = nameServer(t, "127.0.0.1") // loopback itself is never proxied
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, p, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	_, err = post(t, client(t, o), "http://proxied.example.:"+p)
	require.NoError(t, err)
}
