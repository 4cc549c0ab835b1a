package embedded

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// quietly collects log lines of several goroutines.
type quietly struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (q *quietly) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.b.Write(p)
}

func (q *quietly) String() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.b.String()
}

func TestStoreIsReopenedWhenAFullDiskHasRoom(t *testing.T) {
	t.Parallel()
	var log quietly
	s, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", Store: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Stop()) }()
	nc, err := s.Conn()
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	for i := range 100 {
		_, err = kv.Create(t.Context(), strconv.Itoa(i), []byte("v"))
		require.NoError(t, err)
	}
	s.log.Errorf("JetStream failed to store a msg on stream 'S': write 1.blk: %v", syscall.ENOSPC)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "was reopened") }, 20*time.Second, 10*time.Millisecond)
	require.False(t, s.log.full.Load())
	entry, err := kv.Get(t.Context(), "99")
	require.NoError(t, err)
	require.Equal(t, uint64(100), entry.Revision())
	next, err := kv.Create(t.Context(), "100", []byte("v"))
	require.NoError(t, err)
	require.Equal(t, uint64(101), next)
}

func TestStoreOfAStoppedServerIsNotReopened(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", Store: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	require.ErrorContains(t, s.Reopen(), "the server was stopped")
}

func TestStoreUseIsBoundedByTheLimitAndByTheDisk(t *testing.T) {
	t.Parallel()
	const limit = 1 << 26
	s, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", Store: t.TempDir(), MaxStore: limit})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Stop()) }()
	used, most, err := s.StoreUse()
	require.NoError(t, err)
	require.Zero(t, used)
	require.Equal(t, int64(limit), most)

	nc, err := s.Conn()
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s", make([]byte, 1<<16))
	require.NoError(t, err)
	used, most, err = s.StoreUse()
	require.NoError(t, err)
	require.Greater(t, used, int64(1<<16))
	require.Equal(t, int64(limit), most)

	s.store = t.TempDir() // the disk counts, too
	free, err := freeBytes(s.store)
	require.NoError(t, err)
	require.Positive(t, free)
	s.store += "/nowhere"
	_, _, err = s.StoreUse()
	require.Error(t, err)
}

func TestMemoryStoreHasNoLimitOfTheDisk(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", Memory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Stop()) }()
	_, limit, err := s.StoreUse()
	require.NoError(t, err)
	require.Negative(t, limit)
	_, err = Start(t.Context(), Options{Listen: "127.0.0.1:0", Memory: true, MaxStore: -1})
	require.ErrorContains(t, err, "leave it at 0")
}
