package faults_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// deadWorker takes the next message as a worker that then dies does, and returns the claim
// that it would have stored.
func (r *rig) deadWorker(effect string) idempotency.Record {
	r.Helper()
	c, err := r.js.Consumer(r.Context(), r.space.InStream(), r.space.WorkerConsumer(subjects.DefaultPool))
	require.NoError(r, err)
	m, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
	require.NoError(r, err)
	meta, err := m.Metadata()
	require.NoError(r, err)
	e, err := events.DecodeTurn(m.Data())
	require.NoError(r, err)
	fingerprint := events.Fingerprint(e)
	data, err := events.Encode(events.KindToolCall, &events.ToolCall{
		AppID: e.App, ChatID: e.Chat, Turn: e.Turn, ToolCallID: e.Turn, CallID: e.Turn, Corr: e.Turn, ToolName: "work_" + effect,
		WorkflowName: e.Workflow, Agent: e.Agent, Payload: events.ToolCallPayload{ToolArgs: e.Data},
	}, time.Now())
	require.NoError(r, err)
	return idempotency.Record{
		Key: subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn).Public(events.KindToolCall), Data: data,
		Meta: idempotency.Meta{
			Owner: "dead", Nonce: "n", Epoch: 1, Effect: effect, Fingerprint: events.Hex(fingerprint),
			Lease: idempotency.Lease{Stream: meta.Stream, Seq: meta.Sequence.Stream, Delivery: meta.NumDelivered},
		},
	}
}

func (r *rig) journal() *kvstore.Store {
	r.Helper()
	kv, err := kvstore.Open(r.nc, r.space)
	require.NoError(r, err)
	r.Cleanup(kv.Close)
	return kv
}

// F20: the claim of a turn is damaged after its worker died. Whatever is wrong with it, the
// tool is not entered, though its effect would allow it.
func TestDamagedClaimIsNeverRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kv := r.journal()
	bucket, err := r.js.KeyValue(t.Context(), r.space.TurnsBucket())
	require.NoError(t, err)
	const huge = 900 << 10 // the server takes no more than a mebibyte
	store := func(c idempotency.Record) error { _, err := kv.Create(t.Context(), c); return err }
	put := func(c idempotency.Record, text string) error {
		_, err := bucket.PutString(t.Context(), c.Key, text)
		return err
	}
	cases := []struct {
		name   string
		code   events.Code
		damage func(c idempotency.Record) error
	}{
		{"not damaged", "", store}, // what the others are held against
		{"cut off", events.CodeStateCorrupt, func(c idempotency.Record) error { c.Data = c.Data[:len(c.Data)/2]; return store(c) }},
		{"empty", events.CodeStateCorrupt, func(c idempotency.Record) error { c.Data = nil; return store(c) }},
		{"of another kind", events.CodeStateCorrupt, func(c idempotency.Record) error {
			c.Data = []byte(strings.Replace(string(c.Data), "chat.tool_call", "chat.tool_call_v2", 1))
			return store(c)
		}},
		{"of another turn", events.CodeStateCorrupt, func(c idempotency.Record) error {
			c.Data = []byte(strings.ReplaceAll(string(c.Data), `"chat"`, `"other"`))
			return store(c)
		}},
		{"as large as can be", events.CodeStateCorrupt, func(c idempotency.Record) error { c.Data = []byte(strings.Repeat("[", huge)); return store(c) }},
		{"a foreign value", events.CodeStateCorrupt, func(c idempotency.Record) error { return put(c, "not ours") }},
		{"a large foreign value", events.CodeStateCorrupt, func(c idempotency.Record) error { return put(c, strings.Repeat("x", huge)) }},
		{"deleted by hand", events.CodeStateCorrupt, func(c idempotency.Record) error { return bucket.Delete(t.Context(), c.Key) }},
		{"of an unknown effect", events.CodeInterrupted, func(c idempotency.Record) error { c.Meta.Effect = "verified"; return store(c) }},
		{"of an epoch that is none", events.CodeStateCorrupt, func(c idempotency.Record) error { c.Meta.Epoch = -1; return store(c) }},
	}
	var turns []*oneturn.Turn
	for _, c := range cases {
		one := turn("Work", "chat", c.name, "idempotent", 0)
		_, err := r.client.Publish(t.Context(), one)
		require.NoError(t, err)
		turns = append(turns, one)
	}
	var claims []idempotency.Record // taken immediately: an ack wait later they are delivered again
	for range cases {
		claims = append(claims, r.deadWorker("idempotent"))
	}
	for i, c := range cases {
		require.NoError(t, c.damage(claims[i]), c.name)
	}
	r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "idempotent")}})
	for i, c := range cases {
		response := r.await(turns[i].TurnID)
		require.Equal(t, c.code, response.Code, c.name)
		if c.code == "" {
			require.Equal(t, 1, r.entered(turns[i].TurnID), c.name)
			continue
		}
		require.Zero(t, r.entered(turns[i].TurnID), c.name)
	}
	r.drained()
}

// F20: the response of a turn is damaged. Its reader gets an error, and a duplicate runs nothing.
func TestDamagedResponseReadsAsStateCorrupt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "idempotent")}})
	bucket, err := r.js.KeyValue(t.Context(), r.space.TurnsBucket())
	require.NoError(t, err)
	for name, damage := range map[string]func(key string) error{
		"foreign": func(key string) error { _, err := bucket.PutString(t.Context(), key, "not ours"); return err },
		"deleted": func(key string) error { return bucket.Delete(t.Context(), key) },
	} {
		one := turn("Work", "chat", name, "idempotent", 0)
		_, err := r.client.Publish(t.Context(), one)
		require.NoError(t, err)
		require.Empty(t, r.await(one.TurnID).Code)
		require.NoError(t, damage(subjects.TurnKey("app", "chat", "", name).Public(events.KindToolResponse)))

		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for _, await := range []func() (*oneturn.Response, error){
			func() (*oneturn.Response, error) { return r.client.Await(ctx, one.TurnID) },
			func() (*oneturn.Response, error) { return r.client.AwaitTurn(ctx, one) },
		} {
			_, err = await()
			var failed *events.Error
			require.ErrorAs(t, err, &failed, name)
			require.Equal(t, events.CodeStateCorrupt, failed.Code, name)
		}
		_, err = r.client.Publish(t.Context(), one)
		require.NoError(t, err)
		r.drained()
		require.Equal(t, 1, r.entered(one.TurnID), name)
	}
}

// F21: the journal has forgotten a turn that ended, because its retention was forced below what
// events need, and then its message is delivered again. The age of the event keeps it from
// running a second time.
func TestLateRedeliveryOfAForgottenTurnIsTooOld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := turn("Work", "chat", "t", "idempotent", 0)
	r.publish(one, true)
	claim := r.deadWorker("idempotent")
	kv := r.journal()
	_, err := kv.Create(t.Context(), claim)
	require.NoError(t, err)
	claim.Key = subjects.TurnKey("app", "chat", "", "t").Public(events.KindToolResponse)
	_, err = kv.Create(t.Context(), claim) // it died before it acknowledged the message
	require.NoError(t, err)

	journal, err := r.js.Stream(t.Context(), r.space.TurnsStream())
	require.NoError(t, err)
	config := journal.CachedInfo().Config
	short := config
	short.MaxAge, short.Duplicates = time.Second, time.Second
	_, err = r.js.UpdateStream(t.Context(), short)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := journal.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	}, 20*time.Second, 50*time.Millisecond, "the journal does not forget")
	_, err = r.js.UpdateStream(t.Context(), config) // no worker starts on the other one
	require.NoError(t, err)
	audit, err := r.js.Stream(t.Context(), oneturntest.AuditStream)
	require.NoError(t, err)
	require.NoError(t, audit.Purge(t.Context())) // of the turn's first life

	r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "idempotent")}, MaxEventAge: time.Second})
	require.Equal(t, events.CodeTooOld, r.await(one.TurnID).Code)
	require.Zero(t, r.entered(one.TurnID))
	r.settle(nil, one)
}

// F19: a journal that may be full one day would refuse the ends of turns: no worker starts on it.
func TestJournalWithASizeLimitIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	journal, err := r.js.Stream(t.Context(), r.space.TurnsStream())
	require.NoError(t, err)
	config := journal.CachedInfo().Config
	config.MaxBytes = 1 << 30
	_, err = r.js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	w, err := oneturn.NewWorker(r.nc, oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "unsafe")}})
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "refuses the ends of turns too")
}
