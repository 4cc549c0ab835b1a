package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

// lagging reads blobs from a replica that has none.
type lagging struct{ jetstream.JetStream }

func (l lagging) ObjectStore(ctx context.Context, bucket string) (jetstream.ObjectStore, error) {
	store, err := l.JetStream.ObjectStore(ctx, bucket)
	return empty{store}, err
}

type empty struct{ jetstream.ObjectStore }

func (empty) GetBytes(context.Context, string, ...jetstream.GetObjectOpt) ([]byte, error) {
	return nil, jetstream.ErrObjectNotFound
}

func TestBytesOfADeadLetterAreGoneOnlyIfTheLeaderLacksThem(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	srv.Provision()
	nc := srv.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s := &server{nc: nc, js: lagging{js}, space: mustSpace(t), timeout: 5 * time.Second}
	l := &deadLetter{tenant: "app", kind: "cancel", Blob: subjects.DeadBlob("app", "cancel", 1)}
	l.Source = 1
	want := []byte("the bytes")
	sum := sha256.Sum256(want)
	l.SHA256 = hex.EncodeToString(sum[:])
	_, err = s.content(t.Context(), l, nil)
	require.ErrorContains(t, err, "are deleted")
	store, err := js.ObjectStore(t.Context(), s.space.BlobsBucket())
	require.NoError(t, err)
	_, err = store.PutBytes(t.Context(), l.Blob, want)
	require.NoError(t, err)
	got, err := s.content(t.Context(), l, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
