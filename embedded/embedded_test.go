package embedded_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	srv, err := embedded.Start(context.Background(), embedded.Options{Listen: "127.0.0.1:0", Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Stop() }()

	nc, err := srv.Conn()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	fmt.Println(nc.IsConnected())
	// Output: true
}

// start runs a server that ends with the test.
func start(t *testing.T, opts embedded.Options) *embedded.Server {
	t.Helper()
	if opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	srv, err := embedded.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop()) })
	return srv
}

// connect opens a connection that ends with the test, before the server.
func connect(t *testing.T, srv *embedded.Server) jetstream.JetStream {
	t.Helper()
	nc, err := srv.Conn()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func TestRecordsOutliveAStopAndTheStoreCanBeOpenedAgain(t *testing.T) {
	t.Parallel()
	for _, syncAlways := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync_always=%v", syncAlways), func(t *testing.T) {
			t.Parallel()
			opts := embedded.Options{Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "data"), SyncAlways: syncAlways}
			srv, err := embedded.Start(t.Context(), opts)
			require.NoError(t, err)
			require.Equal(t, syncAlways, srv.SyncAlways())
			nc, err := srv.Conn()
			require.NoError(t, err)
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
			require.NoError(t, err)
			_, err = kv.Create(t.Context(), "k", []byte("v"))
			require.NoError(t, err)
			nc.Close()
			require.NoError(t, srv.Stop())
			require.NoError(t, srv.Stop(), "a second stop is harmless")

			kv, err = connect(t, start(t, opts)).KeyValue(t.Context(), "b")
			require.NoError(t, err)
			entry, err := kv.Get(t.Context(), "k")
			require.NoError(t, err)
			require.Equal(t, "v", string(entry.Value()))
		})
	}
}

func TestStoreIsPrivateToItsOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	start(t, embedded.Options{Store: dir})
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestSecondServerOnOneStoreFailsWithTheHintToConnect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, embedded.Options{Store: dir})
	_, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Store: dir})
	require.ErrorIs(t, err, embedded.ErrLocked)
	require.ErrorContains(t, err, "--nats")
	require.ErrorContains(t, err, "--store")
}

func TestPortInUseIsReportedAndReleasesTheStore(t *testing.T) {
	t.Parallel()
	first := start(t, embedded.Options{Memory: true})
	dir := t.TempDir()
	listen := strings.TrimPrefix(first.URL(), "nats://")
	_, err := embedded.Start(t.Context(), embedded.Options{Listen: listen, Store: dir})
	require.ErrorIs(t, err, embedded.ErrPortInUse)
	require.ErrorContains(t, err, "--nats")
	require.ErrorContains(t, err, "--listen "+listen)

	start(t, embedded.Options{Store: dir})
}

func TestPasswordProtectsTCPAndNotTheOwner(t *testing.T) {
	t.Parallel()
	srv := start(t, embedded.Options{Memory: true, Username: "u", Password: "p"})
	connect(t, srv)
	_, err := nats.Connect(srv.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	nc, err := nats.Connect(srv.URL(), nats.UserInfo("u", "p"))
	require.NoError(t, err)
	nc.Close()
	require.NotContains(t, srv.URL(), "p@")
}

// A client that knows an inbox of the process could send messages there in the name of the server.
func TestOnlyTheOwnConnectionListensAtItsInboxes(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]embedded.Options{
		"open": {Memory: true}, "password": {Memory: true, Username: "u", Password: "p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, o)
			own := connect(t, srv).Conn()
			inbox := own.NewInbox()
			refused := make(chan error, 10)
			other, err := nats.Connect(srv.URL(), nats.UserInfo(o.Username, o.Password),
				nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
			require.NoError(t, err)
			t.Cleanup(other.Close)
			base, _, _ := strings.Cut(inbox, ".")
			_, err = other.SubscribeSync(base + ".>")
			require.NoError(t, err)
			require.NoError(t, other.Flush())
			require.ErrorIs(t, <-refused, nats.ErrPermissionViolation)

			all, err := other.SubscribeSync(">")
			require.NoError(t, err)
			require.NoError(t, other.Flush())
			require.NoError(t, own.Publish(inbox, []byte("a reply")))
			require.NoError(t, own.Publish("open", nil))
			m, err := all.NextMsg(5 * time.Second)
			require.NoError(t, err)
			require.Equal(t, "open", m.Subject, "a reply is not read along")
			_, err = other.Request("$JS.API.INFO", nil, 5*time.Second)
			require.NoError(t, err, "everything else is open")
			_, err = other.Subscribe("work", func(m *nats.Msg) { _ = m.Respond([]byte("done")) })
			require.NoError(t, err)
			require.NoError(t, other.Flush())
			m, err = own.Request("work", nil, 5*time.Second)
			require.NoError(t, err, "others answer the process")
			require.Equal(t, "done", string(m.Data))
		})
	}
}

func TestMaxPayloadIsWhatWasAsked(t *testing.T) {
	t.Parallel()
	srv := start(t, embedded.Options{Memory: true, MaxPayload: 4 << 20})
	require.EqualValues(t, 4<<20, connect(t, srv).Conn().MaxPayload())
}

func TestWrongOptionsAreRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts embedded.Options
		want string
	}{
		"no port":               {embedded.Options{Listen: "localhost"}, "--listen 127.0.0.1:4222"},
		"port is a word":        {embedded.Options{Listen: "localhost:nats"}, "--listen 127.0.0.1:4222"},
		"port too large":        {embedded.Options{Listen: "localhost:70000"}, "--listen 127.0.0.1:4222"},
		"open to the network":   {embedded.Options{Listen: "0.0.0.0:4222"}, "listen on 127.0.0.1:4222"},
		"every address":         {embedded.Options{Listen: ":4222"}, "listen on 127.0.0.1:4222"},
		"a host name":           {embedded.Options{Listen: "localhost.example.com:0"}, "has no password"},
		"user alone":            {embedded.Options{Username: "u"}, "must be set together"},
		"password alone":        {embedded.Options{Password: "p"}, "must be set together"},
		"payload too large":     {embedded.Options{MaxPayload: 1 << 40}, "leave it at 1048576"},
		"payload negative":      {embedded.Options{MaxPayload: -1}, "leave it at 1048576"},
		"store below a file":    {embedded.Options{Listen: "127.0.0.1:0", Store: "doc.go/x"}, "--store DIR"},
		"store is a plain file": {embedded.Options{Listen: "127.0.0.1:0", Store: "doc.go"}, "--store DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := embedded.Start(t.Context(), tc.opts)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestCancelledStartReturnsItsCauseAndReleasesTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: dir})
	require.ErrorIs(t, err, context.Canceled)
	start(t, embedded.Options{Store: dir})
}

func TestServerIsQuietWhenAllIsWell(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	srv, err := embedded.Start(t.Context(), embedded.Options{
		Listen: "127.0.0.1:0", Store: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	require.NoError(t, srv.Stop())
	require.Empty(t, log.String())
}

// TestUncleanStopIsExplainedAndNotAlarming opens a copy of a store that a server still writes to, which is
// what a crash leaves: the indexes are as of the last clean stop.
func TestUncleanStopIsExplainedAndNotAlarming(t *testing.T) {
	t.Parallel()
	opts := embedded.Options{Listen: "127.0.0.1:0", Store: t.TempDir()}
	write := func(srv *embedded.Server, key string) {
		kv, err := connect(t, srv).CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
		require.NoError(t, err)
		_, err = kv.Create(t.Context(), key, []byte("v"))
		require.NoError(t, err)
	}
	srv, err := embedded.Start(t.Context(), opts)
	require.NoError(t, err)
	write(srv, "k1")
	require.NoError(t, srv.Stop())
	write(start(t, opts), "k2")

	var log bytes.Buffer
	crashed := embedded.Options{Listen: "127.0.0.1:0", Store: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, os.CopyFS(crashed.Store, os.DirFS(opts.Store)))
	srv, err = embedded.Start(t.Context(), crashed)
	require.NoError(t, err)
	kv, err := connect(t, srv).KeyValue(t.Context(), "b")
	require.NoError(t, err)
	keys, err := kv.Keys(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"k1", "k2"}, keys)
	require.NoError(t, srv.Stop())
	require.Equal(t, 1, strings.Count(log.String(), "not closed cleanly"), log.String())
	require.Contains(t, log.String(), "will rebuild")
	require.NotContains(t, log.String(), "level=WARN")
}

func TestSubscribersAreCountedByConnection(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Memory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	count := func() int {
		n, err := s.Subscribers("a.api.")
		require.NoError(t, err)
		return n
	}
	require.Zero(t, count())
	for n := range 2 {
		nc, err := s.Conn()
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		for _, subject := range []string{"a.api.*.turn", "a.api.*.history", "b.api.*.turn"} {
			_, err = nc.SubscribeSync(subject)
			require.NoError(t, err)
		}
		require.NoError(t, nc.Flush())
		require.Equal(t, n+1, count())
	}
}
