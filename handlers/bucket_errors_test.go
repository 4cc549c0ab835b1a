package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// bindEager binds the tool of the kit as one in Python is: it gets the context variables of its
// chat with the call.
func (k *kit) bindEager(effect bindings.Effect) {
	k.t.Helper()
	k.bind(effect, 0)
	b := k.Bindings().Bindings()[0]
	b.Kind, b.AcceptsContext = bindings.KindPython, true // no other worker has seen it
}

func (k *kit) document() (jetstream.KeyValue, string) {
	k.t.Helper()
	kv, err := k.js.KeyValue(k.t.Context(), k.space.ContextBucket())
	require.NoError(k.t, err)
	return kv, subjects.ContextKey("app", "chat")
}

// limit changes the stream of a bucket.
func (k *kit) limit(stream string, change func(*jetstream.StreamConfig)) {
	k.t.Helper()
	s, err := k.js.Stream(k.t.Context(), stream)
	require.NoError(k.t, err)
	config := s.CachedInfo().Config
	change(&config)
	_, err = k.js.UpdateStream(k.t.Context(), config)
	require.NoError(k.t, err)
}

// large is a JSON text of n bytes.
func large(n int) string {
	b := make([]byte, n-2)
	for i := range b {
		b[i] = 'a' + byte(rand.IntN(26))
	}
	return strconv.Quote(string(b))
}

func returns(r tools.Result) tools.Invoker {
	return toolFunc(func(context.Context, *tools.Call) (tools.Result, error) { return r, nil })
}

// soon is a delivery whose lease ends before the test does.
func (k *kit) soon() *inbound.Message {
	m := k.message(1, 1)
	held, cancel := context.WithTimeout(k.t.Context(), 8*time.Second)
	k.t.Cleanup(cancel)
	m.Held = held
	return m
}

// F20: see docs/faults.md.
func TestResultThatAFullBucketRefusesEndsTheTurnWithTheReason(t *testing.T) {
	t.Parallel()
	k := newKit(t, returns(tools.Result{Value: json.RawMessage(large(400_000)), Set: map[string]any{"x": "y"}}))
	k.limit("OBJ_"+k.space.BlobsBucket(), func(c *jetstream.StreamConfig) { c.MaxBytes = 100_000 })
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.soon()).Do)
	r := k.response()
	require.Equal(t, events.CodeTooLarge, r.Code)
	require.Contains(t, r.Content, "Tool t ran and its effect has happened")
	require.Contains(t, r.Content, "--blobs-max-bytes")
	require.Equal(t, []string{"x"}, r.ContextKeys, "they are stored")
}

// F20: see docs/faults.md.
func TestArgumentsThatAFullBucketRefusesEndTheTurnBeforeItsTool(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		t.Error("the tool was entered")
		return tools.Result{}, nil
	}))
	k.limit("OBJ_"+k.space.BlobsBucket(), func(c *jetstream.StreamConfig) { c.MaxBytes = 100_000 })
	m := k.soon()
	m.Data = bytes.Replace(m.Data, []byte(`"structured_data":{}`), []byte(`"structured_data":{"x":`+large(400_000)+`}`), 1)
	require.Greater(t, len(m.Data), 400_000)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	require.Equal(t, events.CodeTooLarge, k.response().Code)
	require.Contains(t, k.response().Content, "--blobs-max-bytes")
}

// A bucket that is full by now has the blob already: an earlier delivery stored it.
func TestBlobThatIsThereNeedsNoRoom(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	key, data := subjects.TurnKey("app", "chat", "", "turn"), []byte(large(400_000))
	first, err := k.Blobs.Shrink(t.Context(), key, "k", nil, data)
	require.NoError(t, err)
	k.limit("OBJ_"+k.space.BlobsBucket(), func(c *jetstream.StreamConfig) { c.MaxBytes = 500_000 })
	again, err := k.Blobs.Shrink(k.soon().Held, key, "k", nil, data)
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = k.Blobs.Shrink(k.soon().Held, key, "other", nil, data)
	require.ErrorIs(t, err, events.ErrTooLarge)
	store, err := k.js.ObjectStore(t.Context(), k.space.BlobsBucket())
	require.NoError(t, err)
	blob, ok := first.(events.Blob)
	require.True(t, ok)
	kept, err := store.GetBytes(t.Context(), blob.Blob)
	require.NoError(t, err)
	require.Equal(t, data, kept)
	k.limit("OBJ_"+k.space.BlobsBucket(), func(c *jetstream.StreamConfig) { c.MaxBytes = -1 })
	_, err = k.Blobs.Shrink(k.soon().Held, key, "other", nil, data)
	require.NoError(t, err, "there is room again")
}

// F20: see docs/faults.md.
func TestContextVariablesContinueAfterTheirDocumentWasDeletedByHand(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(kv jetstream.KeyValue, key string) error{
		"delete": func(kv jetstream.KeyValue, key string) error { return kv.Delete(t.Context(), key) },
		"purge":  func(kv jetstream.KeyValue, key string) error { return kv.Purge(t.Context(), key) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			set := func(seq uint64, value string) error {
				return k.Variables.Merge(k.soon().Held, "app", "chat", seq, variables.Delta{Set: map[string]any{"x": value}})
			}
			require.NoError(t, set(1, "old"))
			kv, key := k.document()
			require.NoError(t, remove(kv, key))
			require.NoError(t, set(2, "new"))
			got, err := k.Variables.Load(t.Context(), "app", "chat", variables.Layers{})
			require.NoError(t, err)
			require.Equal(t, map[string]any{"x": "new"}, got)
		})
	}
}

// F20: see docs/faults.md.
func TestChangesOfADamagedDocumentAreNamedAsNotStoredAndTheResultIsKept(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"no JSON": "not JSON", "null": "null", "empty": "", "a list": "[1]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, returns(tools.Result{Value: json.RawMessage(`{"reserved":7}`), Set: map[string]any{"x": "y"}}))
			kv, key := k.document()
			_, err := kv.PutString(t.Context(), key, text)
			require.NoError(t, err)
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.soon()).Do)
			r := k.response()
			require.Equal(t, events.CodeStateCorrupt, r.Code)
			require.False(t, r.Success)
			require.Contains(t, r.Content, "nats kv del "+kv.Bucket()+" "+key)
			require.Empty(t, r.ContextKeys)
			payload, ok := r.Payload.(map[string]any)
			require.True(t, ok)
			require.Equal(t, map[string]any{"reserved": json.Number("7")}, payload["result"])
		})
	}
}

func TestChangesThatTheBucketRefusesAreNamedAsNotStoredAndTheResultIsKept(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*jetstream.StreamConfig){
		"full":          func(c *jetstream.StreamConfig) { c.MaxBytes = 10_000 },
		"small message": func(c *jetstream.StreamConfig) { c.MaxMsgSize = 10_000 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, returns(tools.Result{Value: json.RawMessage(`7`), Set: map[string]any{"x": large(20_000)}}))
			k.limit("KV_"+k.space.ContextBucket(), limit)
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.soon()).Do)
			r := k.response()
			require.Equal(t, events.CodeTooLarge, r.Code)
			require.Contains(t, r.Content, k.space.ContextBucket())
			payload, ok := r.Payload.(map[string]any)
			require.True(t, ok)
			require.Equal(t, json.Number("7"), payload["result"])
		})
	}
}

// lose takes the bucket of context variables away, so that it does not answer, and returns the log.
func (k *kit) lose() *bytes.Buffer {
	k.t.Helper()
	log := &bytes.Buffer{}
	k.Logger = slog.New(slog.NewTextHandler(log, nil))
	v, ok := k.Variables.(*variables.Variables)
	require.True(k.t, ok)
	v.Retries = store.Retries{Metrics: k.Metrics, Logger: k.Logger}
	require.NoError(k.t, k.js.DeleteKeyValue(k.t.Context(), k.space.ContextBucket()))
	return log
}

// retries is the metric of the one bucket that was tried again.
func (k *kit) retries() float64 {
	k.t.Helper()
	families, err := k.registry.Gather()
	require.NoError(k.t, err)
	for _, f := range families {
		if f.GetName() == "oneturn_store_retries_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

func TestBucketThatDoesNotAnswerShowsInLogAndMetricUntilTheWorkerDrains(t *testing.T) {
	t.Parallel()
	k := newKit(t, returns(tools.Result{Set: map[string]any{"x": "y"}}))
	log := k.lose()
	m := k.message(1, 1)
	held, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	m.Held = held
	ctx, drain := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { drain(handlers.ErrDraining) })
	require.Equal(t, inbound.Nak, k.Handle(ctx, m).Do, "the inbox leaves a message whose lease is lost")
	require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("a bucket does not answer; it is retried")), "once with the lease, once without: %s", log)
	require.Greater(t, k.retries(), 2.0)
}

func TestDrainDoesNotWaitForABucketThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for effect, want := range map[bindings.Effect]inbound.Do{bindings.EffectUnsafe: inbound.Ack, bindings.EffectIdempotent: inbound.Nak} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			k := newKit(t, returns(tools.Result{Value: json.RawMessage(`7`), Set: map[string]any{"x": "y"}}))
			k.bind(effect, 0)
			k.lose()
			ctx, drain := context.WithCancelCause(t.Context())
			time.AfterFunc(500*time.Millisecond, func() { drain(handlers.ErrDraining) })
			start := time.Now()
			require.Equal(t, want, k.Handle(ctx, k.message(1, 1)).Do)
			require.Less(t, time.Since(start), 8*time.Second)
			if want == inbound.Nak {
				return // it runs again
			}
			r := k.response()
			require.Equal(t, events.CodeInterrupted, r.Code)
			require.Contains(t, r.Content, "its result is in the payload")
		})
	}
}

// F20: a document of context variables is damaged. A tool that gets them with its call is not
// entered, whatever its effect, and nothing is redelivered.
func TestToolWhoseContextDocumentIsDamagedIsNotEntered(t *testing.T) {
	t.Parallel()
	for _, effect := range []bindings.Effect{bindings.EffectUnsafe, bindings.EffectIdempotent} {
		for name, text := range map[string]string{"no JSON": "{", "a damaged variable": `{"x":{"value":{"a":1,"a":2},"written":1}}`} {
			t.Run(string(effect)+", "+name, func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
					t.Error("the tool was entered")
					return tools.Result{}, nil
				}))
				k.bindEager(effect)
				kv, key := k.document()
				_, err := kv.PutString(t.Context(), key, text)
				require.NoError(t, err)
				require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.soon()).Do)
				r := k.response()
				require.Equal(t, events.CodeStateCorrupt, r.Code)
				require.Contains(t, r.Content, "Tool t was not entered: document "+key+" of bucket "+kv.Bucket())
				require.Contains(t, r.Content, "nats kv del")
			})
		}
	}
}

// The bucket may answer before the lease ends; the drain does not wait for that, and the response
// of an unsafe tool states that it was not entered.
func TestDrainDoesNotWaitForContextVariablesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for effect, want := range map[bindings.Effect]inbound.Do{bindings.EffectUnsafe: inbound.Ack, bindings.EffectIdempotent: inbound.Nak} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
				t.Error("the tool was entered")
				return tools.Result{}, nil
			}))
			k.bindEager(effect)
			k.lose()
			ctx, drain := context.WithCancelCause(t.Context())
			time.AfterFunc(500*time.Millisecond, func() { drain(handlers.ErrDraining) })
			start := time.Now()
			require.Equal(t, want, k.Handle(ctx, k.message(1, 1)).Do)
			require.Less(t, time.Since(start), 8*time.Second)
			if want == inbound.Ack {
				require.Equal(t, "The worker stopped before tool t was entered: it did not run.", k.response().Content)
			}
		})
	}
}

func TestCancelEndsATurnWhoseContextVariablesCannotBeRead(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.bindEager(bindings.EffectIdempotent)
	k.lose()
	time.AfterFunc(500*time.Millisecond, k.cancelSeen)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.soon()).Do)
	require.Equal(t, events.CodeCancelled, k.response().Code)
}

// A server that takes small messages only takes small documents only.
func TestContextVariablesKeepToTheMessagesThatTheServerTakes(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing), func(o *embedded.Options) { o.MaxPayload = 256 << 10 })
	err := k.Variables.Merge(k.soon().Held, "app", "chat", 1, variables.Delta{Set: map[string]any{"x": large(300_000)}})
	require.ErrorIs(t, err, events.ErrTooLarge)
	require.ErrorContains(t, err, "222208 is the most")
	require.NoError(t, k.Variables.Merge(k.soon().Held, "app", "chat", 2, variables.Delta{Set: map[string]any{"x": large(200_000)}}))
}
