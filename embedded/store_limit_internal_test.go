package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// on starts a server on a store whose disk has as much room as the test sets.
func on(t *testing.T, dir string, free *atomic.Int64, most int64) *Server {
	t.Helper()
	s := &Server{free: func(string) (int64, error) { return free.Load(), nil }, minFree: 64 << 10}
	s, err := s.open(t.Context(), Options{Listen: "127.0.0.1:0", Store: dir, MaxStore: most})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

// stream returns a stream of the server, made if need be.
func stream(t *testing.T, s *Server) jetstream.JetStream {
	t.Helper()
	nc, err := s.Conn()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}})
	require.NoError(t, err)
	return js
}

func TestStoreThatWasStartedOnAFullDiskContinuesWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var free atomic.Int64
	free.Store(64 << 20)
	first := on(t, dir, &free, 0)
	js := stream(t, first)
	for i := range 20 {
		_, err := js.Publish(t.Context(), "s."+strconv.Itoa(i), make([]byte, 64<<10))
		require.NoError(t, err)
	}
	js.Conn().Close()
	require.NoError(t, first.Stop())

	free.Store(0)
	s := on(t, dir, &free, 0)
	used, limit, err := s.StoreUse()
	require.NoError(t, err)
	require.Equal(t, used, limit, "there is no room")
	require.Greater(t, s.ns.Load().JetStreamConfig().MaxStore, used, "the server itself would store nothing, whatever the disk has room for")

	free.Store(64 << 20)
	require.Eventually(t, func() bool {
		used, limit, err := s.StoreUse()
		return err == nil && s.ready.Load() && used >= 20*64<<10 && float64(used) < 0.85*float64(limit)
	}, 20*time.Second, 10*time.Millisecond, "workers stay paused")
	js = stream(t, s)
	for i := range 4 {
		_, err := js.Publish(t.Context(), "s."+strconv.Itoa(i), make([]byte, 64<<10))
		require.NoError(t, err)
	}
}

func TestLimitThatWasGivenStays(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	free.Store(1 << 30)
	s := on(t, t.TempDir(), &free, 1<<20)
	js := stream(t, s)
	_, err := js.Publish(t.Context(), "s.a", make([]byte, 950<<10))
	require.NoError(t, err)
	require.False(t, s.limitTooLow())
	require.NoError(t, s.Reopen())
	require.EqualValues(t, 1<<20, s.ns.Load().JetStreamConfig().MaxStore)
}

func TestStreamThatCannotBeOpenedIsNotRecreated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var free atomic.Int64
	free.Store(64 << 20)
	first := on(t, dir, &free, 0)
	js := stream(t, first)
	_, err := js.Publish(t.Context(), "s.a", []byte("kept"))
	require.NoError(t, err)
	js.Conn().Close()
	require.NoError(t, first.Stop())
	sum := filepath.Join(dir, "jetstream", "$G", "streams", "S", "meta.sum")
	kept, err := os.ReadFile(sum)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(sum, []byte("damaged"), 0o600))

	_, err = Start(t.Context(), Options{Listen: "127.0.0.1:0", Store: dir})
	require.ErrorIs(t, err, ErrIncomplete)
	require.ErrorContains(t, err, ": S; nothing was made in their place")
	require.ErrorContains(t, err, "make room")

	require.NoError(t, os.WriteFile(sum, kept, 0o600))
	s := on(t, dir, &free, 0)
	info, err := stream(t, s).Stream(t.Context(), "S")
	require.NoError(t, err)
	require.EqualValues(t, 1, info.CachedInfo().State.Msgs)

	require.NoError(t, os.WriteFile(sum, []byte("damaged"), 0o600))
	require.ErrorIs(t, s.Reopen(), ErrIncomplete)
	require.False(t, s.ns.Load().Running(), "a server that lacks streams must not be used")
	require.NoError(t, os.WriteFile(sum, kept, 0o600))
	require.NoError(t, s.Reopen())
}

func TestFolderOfAStreamThatWasNeverMadeIsNotALoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "jetstream", "$G", "streams", "S", "msgs"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jetstream", "$G", "streams", "S", "meta.inf"), nil, 0o600))
	var free atomic.Int64
	stream(t, on(t, dir, &free, 0))
}
