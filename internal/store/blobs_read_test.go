package store_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// staleBlobs is a bucket of blobs whose reads come from a replica that lags.
type staleBlobs struct {
	jetstream.ObjectStore

	stale func() ([]byte, error)
}

func (s staleBlobs) GetBytes(context.Context, string, ...jetstream.GetObjectOpt) ([]byte, error) {
	return s.stale()
}

type staleBlobServer struct {
	jetstream.JetStream

	stale func() ([]byte, error)
}

func (s staleBlobServer) ObjectStore(ctx context.Context, bucket string) (jetstream.ObjectStore, error) {
	store, err := s.JetStream.ObjectStore(ctx, bucket)
	return staleBlobs{store, s.stale}, err
}

// F15: reads of blobs come from a node that lags; whether a blob is gone is decided by the leader.
func TestBlobThatAReplicaDoesNotHaveYetIsReadFromTheLeader(t *testing.T) {
	t.Parallel()
	for name, stale := range map[string]func() ([]byte, error){
		"it has no name":        func() ([]byte, error) { return nil, jetstream.ErrObjectNotFound },
		"it has some chunks":    func() ([]byte, error) { return nil, jetstream.ErrDigestMismatch },
		"it has the one before": func() ([]byte, error) { return []byte(`{"old":true}`), nil },
		"it does not answer":    func() ([]byte, error) { return nil, context.DeadlineExceeded },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBlobServer(t)
			blobs, err := store.NewBlobs(t.Context(), b.nc, staleBlobServer{b.JS, stale}, b.Space)
			require.NoError(t, err)
			key := subjects.TurnKey("app", "chat", "", "turn")
			text := strings.Repeat("y", 700<<10)
			stored, err := blobs.Shrink(t.Context(), key, "park", nil, []byte(`{"x":"`+text+`"}`))
			require.NoError(t, err)
			blob, ok := stored.(events.Blob)
			require.True(t, ok)
			object, err := blobs.Object(t.Context(), key, "park", map[string]any{"$blob": blob.Blob, "sha256": blob.SHA256, "size": blob.Size})
			require.NoError(t, err)
			require.Equal(t, map[string]any{"x": text}, object)
		})
	}
}

func TestBlobThatTheLeaderDoesNotHaveIsGone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(b *blobServer, store jetstream.ObjectStore, blob events.Blob) error{
		"deleted": func(b *blobServer, store jetstream.ObjectStore, blob events.Blob) error {
			return store.Delete(b.t.Context(), blob.Blob)
		},
		"without its content": func(b *blobServer, store jetstream.ObjectStore, blob events.Blob) error {
			info, err := store.GetInfo(b.t.Context(), blob.Blob)
			require.NoError(b.t, err)
			stream, err := b.JS.Stream(b.t.Context(), "OBJ_"+b.Space.BlobsBucket())
			require.NoError(b.t, err)
			return stream.Purge(b.t.Context(), jetstream.WithPurgeSubject("$O."+b.Space.BlobsBucket()+".C."+info.NUID))
		},
		"with other content": func(b *blobServer, store jetstream.ObjectStore, blob events.Blob) error {
			_, err := store.Put(b.t.Context(), jetstream.ObjectMeta{Name: blob.Blob}, bytes.NewReader([]byte(`{"x":1}`)))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBlobServer(t)
			gone := func() ([]byte, error) { return nil, jetstream.ErrObjectNotFound }
			blobs, err := store.NewBlobs(t.Context(), b.nc, staleBlobServer{b.JS, gone}, b.Space)
			require.NoError(t, err)
			key := subjects.TurnKey("app", "chat", "", "turn")
			stored, err := blobs.Shrink(t.Context(), key, "park", nil, []byte(`{"x":"`+strings.Repeat("y", 700<<10)+`"}`))
			require.NoError(t, err)
			blob, ok := stored.(events.Blob)
			require.True(t, ok)
			store, err := b.JS.ObjectStore(t.Context(), b.Space.BlobsBucket())
			require.NoError(t, err)
			require.NoError(t, lose(b, store, blob))
			_, err = blobs.Object(t.Context(), key, "park", map[string]any{"$blob": blob.Blob, "sha256": blob.SHA256, "size": blob.Size})
			require.ErrorContains(t, err, "gone or damaged")
		})
	}
}

// blobServer is a provisioned server.
type blobServer struct {
	t     *testing.T
	nc    *nats.Conn
	JS    jetstream.JetStream
	Space subjects.Space
}

func newBlobServer(t *testing.T) *blobServer {
	t.Helper()
	s := oneturntest.NewServer(t)
	s.Provision()
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	return &blobServer{t, nc, js, space}
}
