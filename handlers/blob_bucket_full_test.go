package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// aged is a blob that the kit has stored, and that is so old that it would be stored again.
func (k *kit) aged(store jetstream.ObjectStore) []byte {
	k.t.Helper()
	const size, life = 300 << 10, 10 * time.Second
	stored := k.shrunk(store)
	require.Eventually(k.t, func() bool { return time.Since(stored) > life/100 }, life, time.Millisecond)
	return []byte(`{"x":"` + strings.Repeat("y", size) + `"}`)
}

// fill leaves so much room in the bucket of blobs.
func (k *kit) fill(room int64) {
	k.t.Helper()
	name := "OBJ_" + k.space.BlobsBucket()
	bucket, err := k.js.Stream(k.t.Context(), name)
	require.NoError(k.t, err)
	full := int64(bucket.CachedInfo().State.Bytes) + room
	k.limit(name, func(c *jetstream.StreamConfig) { c.MaxBytes = full })
}

// F20: see docs/faults.md. A blob is stored again, and the bucket refuses it at any place of it.
func TestBlobThatCannotBeStoredAgainKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(k *kit){
		"no chunk":          func(k *kit) { k.fill(1 << 10) },
		"one chunk":         func(k *kit) { k.fill(150 << 10) },
		"two chunks":        func(k *kit) { k.fill(270 << 10) },
		"all but its entry": func(k *kit) { k.fill(300<<10 + 300) },
		"nothing but its entry and the last chunk": func(k *kit) {
			k.limit("OBJ_"+k.space.BlobsBucket(), func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100 << 10 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			store := k.blobsLive(10 * time.Second)
			data := k.aged(store)
			refuse(k)
			key := subjects.TurnKey("app", "chat", "", "turn")
			stored, err := k.Blobs.Shrink(k.soon().Held, key, events.KindToolCall, nil, data)
			require.NoError(t, err)
			blob, ok := stored.(events.Blob)
			require.True(t, ok)
			kept, err := store.GetBytes(t.Context(), blob.Blob)
			require.NoError(t, err)
			require.Equal(t, data, kept)
			bucket, err := k.js.Stream(t.Context(), "OBJ_"+k.space.BlobsBucket())
			require.NoError(t, err)
			require.EqualValues(t, 4, bucket.CachedInfo().State.Msgs, "three chunks and an entry: what was refused leaves nothing")
		})
	}
}

// F20: see docs/faults.md. A worker dies inside an idempotent tool whose arguments are in a blob.
func TestTurnIsTakenOverWithItsBlobWhenTheBucketIsFull(t *testing.T) {
	t.Parallel()
	entered, dead := make(chan struct{}, 2), make(chan struct{})
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered <- struct{}{}
		if len(entered) == 1 {
			<-dead
		}
		return tools.Result{Value: json.RawMessage(`"done"`)}, nil
	}))
	k.bind(bindings.EffectIdempotent, time.Minute)
	store := k.blobsLive(10 * time.Second)
	large := func(delivery uint64) *inbound.Message {
		m := k.message(1, delivery)
		body, err := events.EncodeTurn(&events.StructuredOutputReady{
			TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Agent: "A", Model: "M",
			Data: map[string]any{"x": strings.Repeat("y", 300<<10)}, AutoToolMode: true,
		}, time.Now())
		require.NoError(t, err)
		m.Data = body
		return m
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		k.Handle(t.Context(), large(1))
	}()
	t.Cleanup(func() { close(dead); <-gone })
	require.Eventually(t, func() bool { return len(entered) == 1 }, 5*time.Second, time.Millisecond)
	k.aged(store) // the payload, from which the blob has its name
	k.fill(1 << 10)
	require.Equal(t, inbound.Ack, handlers.New(k.Config).Handle(t.Context(), large(2)).Do)
	r := k.response()
	require.Empty(t, r.Code, "%s", r.Content)
	require.Len(t, entered, 2)
}

// A dead letter that finds no room takes none of an older one.
func TestDeadLetterThatIsRefusedLeavesTheBytesOfTheOlderOneOfItsName(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	store := k.blobsLive(time.Hour)
	bad := func(seq uint64, text string) {
		m := k.message(seq, 1)
		m.Data = []byte(strings.Repeat(text, 600<<10))
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	}
	bad(1, "a")
	k.fill(1 << 10)
	bad(1+subjects.DeadBlobs, "b")
	all, err := store.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	kept, err := store.GetBytes(t.Context(), all[0].Name)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("a", 600<<10), string(kept))
}
