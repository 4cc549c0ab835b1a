package handlers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// shrunk stores a large payload of the kit's turn and returns when the server stored it.
func (k *kit) shrunk(store jetstream.ObjectStore) time.Time {
	k.t.Helper()
	data := []byte(`{"x":"` + strings.Repeat("y", 300<<10) + `"}`)
	stored, err := k.Blobs.Shrink(k.t.Context(), subjects.TurnKey("app", "chat", "", "turn"), events.KindToolCall, nil, data)
	require.NoError(k.t, err)
	blob, ok := stored.(events.Blob)
	require.True(k.t, ok)
	info, err := store.GetInfo(k.t.Context(), blob.Blob)
	require.NoError(k.t, err)
	return info.ModTime
}

func (k *kit) blobsLive(life time.Duration) jetstream.ObjectStore {
	k.t.Helper()
	k.limit("OBJ_"+k.space.BlobsBucket(), func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = life, min(life, time.Minute) })
	store, err := k.js.ObjectStore(k.t.Context(), k.space.BlobsBucket())
	require.NoError(k.t, err)
	return store
}

// F21: see docs/faults.md. A later turn of a key has the payload of the former one.
func TestBlobLivesAsLongAsTheLastRecordThatNamesIt(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	store := k.blobsLive(10 * time.Second)
	first := k.shrunk(store)
	const aged = 50 * time.Millisecond
	require.Eventually(t, func() bool {
		at := k.shrunk(store)
		return at.Sub(first) >= aged
	}, 5*time.Second, aged, "stored again")
}

func TestBlobThatWasJustStoredIsNotStoredAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	store := k.blobsLive(10 * 24 * time.Hour)
	first := k.shrunk(store)
	require.Equal(t, first, k.shrunk(store))
}
