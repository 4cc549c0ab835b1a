package handlers_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// reused is a kit whose workflow runs reused keys with an unsafe tool. Its run of the second data
// never returns before the test ends.
type reused struct {
	*kit

	entered [3]atomic.Int32 // by the number in the data
	dead    chan struct{}
}

const reusedManifest = `
models: {M: {type: object, properties: {n: {type: integer}}}}
agents: {A: {model: M}}
tools: [{name: t, agent: A, kind: go}]
`

func newReused(t *testing.T) *reused {
	t.Helper()
	k := &reused{dead: make(chan struct{})}
	k.kit = newKit(t, toolFunc(func(_ context.Context, c *tools.Call) (tools.Result, error) {
		n, _ := strconv.Atoi(string(c.Args["n"].(json.Number))) //nolint:forcetypeassert // the model declares integer
		if k.entered[n].Add(1) == 1 && n == 2 {
			<-k.dead
		}
		return tools.Result{}, nil
	}))
	k.bindFolder("on_key_reuse: run" + reusedManifest)
	return k
}

// data is a message of the turn with a number for its data.
func (k *reused) data(seq, delivery uint64, n int) *inbound.Message {
	k.t.Helper()
	m := k.message(seq, delivery)
	body, err := events.EncodeTurn(&events.StructuredOutputReady{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Agent: "A", Model: "M",
		Data: map[string]any{"n": json.Number(strconv.Itoa(n))}, AutoToolMode: true,
	}, time.Now())
	require.NoError(k.t, err)
	m.Data = body
	return m
}

// dies has a worker enter the tool with the second data, and returns while it is in there: message 2,
// delivery 1. The first data, message 1, has ended before, and is the last that expires.
func (k *reused) dies() {
	k.t.Helper()
	require.Equal(k.t, inbound.Ack, k.Handle(k.t.Context(), k.data(1, 1, 1)).Do)
	first, err := k.store.Last(k.t.Context(), subjects.TurnKey("app", "chat", "", "turn").Public(events.KindToolResponse))
	require.NoError(k.t, err)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		k.Handle(k.t.Context(), k.data(2, 1, 2))
	}()
	k.t.Cleanup(func() { close(k.dead); <-gone })
	require.Eventually(k.t, func() bool { return k.entered[2].Load() == 1 }, 5*time.Second, time.Millisecond)
	k.store.Expire(first.Seq)
}

// responses counts the ends that are stored under all keys.
func (k *reused) responses() (codes []events.Code) {
	k.t.Helper()
	plain := subjects.TurnKey("app", "chat", "", "turn")
	body, err := events.DecodeTurn(k.data(2, 1, 2).Data)
	require.NoError(k.t, err)
	fingerprint := events.Fingerprint(body)
	for _, key := range []subjects.Key{plain, plain.Reuse("", "turn", events.Hex(fingerprint))} {
		r, err := k.store.Last(k.t.Context(), key.Public(events.KindToolResponse))
		if err != nil {
			require.ErrorIs(k.t, err, idempotency.ErrNotFound)
			continue
		}
		var response events.ToolResponse
		m, err := events.Parse(r.Data)
		require.NoError(k.t, err)
		require.NoError(k.t, m.As(&response))
		codes = append(codes, response.Code)
	}
	return codes
}

// F21: see docs/faults.md.
func TestReusedKeyIsNotEnteredAgainWhenTheClaimOfItsFirstDataExpires(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seq, delivery uint64
		prepare       func(k *reused, m *inbound.Message)
		want          []events.Code
	}{
		"redelivery": {seq: 2, delivery: 2, want: []events.Code{events.CodeInterrupted}},
		"duplicate":  {seq: 3, delivery: 1},
		"redelivery that is too old": {seq: 2, delivery: 2, want: []events.Code{events.CodeInterrupted}, prepare: func(_ *reused, m *inbound.Message) {
			m.Stored = m.Stored.Add(-48 * time.Hour)
		}},
		"redelivery to a worker without the workflow": {seq: 2, delivery: 2, want: []events.Code{events.CodeInterrupted}, prepare: func(k *reused, m *inbound.Message) {
			k.bindFolder("compat: {}")
			m.Stored = m.Stored.Add(-48 * time.Hour)
		}},
		"redelivery after the workflow refuses reused keys": {seq: 2, delivery: 2, want: []events.Code{events.CodeInterrupted}, prepare: func(k *reused, _ *inbound.Message) {
			k.bindFolder("on_key_reuse: refuse" + reusedManifest)
		}},
		"duplicate after the workflow refuses reused keys": {seq: 3, delivery: 1, prepare: func(k *reused, _ *inbound.Message) {
			k.bindFolder("on_key_reuse: refuse" + reusedManifest)
		}},
		"redelivery after the workflow does not mention reused keys": {seq: 2, delivery: 2, want: []events.Code{events.CodeInterrupted}, prepare: func(k *reused, _ *inbound.Message) {
			k.bindFolder(reusedManifest)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newReused(t)
			k.dies()
			m := k.data(test.seq, test.delivery, 2)
			if test.prepare != nil {
				test.prepare(k, m)
			}
			require.Equal(t, inbound.Ack, handlers.New(k.Config).Handle(t.Context(), m).Do)
			require.EqualValues(t, 1, k.entered[2].Load(), "an unsafe tool is entered once a turn")
			require.Equal(t, test.want, k.responses())
		})
	}
}

// F21: see docs/faults.md.
func TestReusedKeyThatHasEndedGetsNoSecondResponseWhenTheClaimOfItsFirstDataExpires(t *testing.T) {
	t.Parallel()
	k := newReused(t)
	k.dies()
	for seq := uint64(2); seq < 5; seq++ { // its redelivery ends it, duplicates follow
		require.Equal(t, inbound.Ack, handlers.New(k.Config).Handle(t.Context(), k.data(seq, 2, 2)).Do)
	}
	require.Equal(t, []events.Code{events.CodeInterrupted}, k.responses())
	require.EqualValues(t, 1, k.entered[2].Load())
}

func TestFirstDataOfAReusedKeyStaysUnderThePlainKey(t *testing.T) {
	t.Parallel()
	k := newReused(t)
	k.dies()
	other := k.data(4, 1, 0) // the plain key is free again
	require.Equal(t, inbound.Ack, handlers.New(k.Config).Handle(t.Context(), other).Do)
	require.True(t, k.response().Success)
	for delivery := range uint64(2) {
		require.Equal(t, inbound.Ack, handlers.New(k.Config).Handle(t.Context(), k.data(5, delivery+1, 0)).Do)
	}
	require.EqualValues(t, 1, k.entered[0].Load())
}

// F26: see docs/faults.md. A worker that knows no place records claims data under the plain key, which the first data
// has left, and dies in its tool, though another worker has decided that the data has a separate key.
func TestReusedKeyThatAWorkerOfTheVersionBeforeHasEnteredIsNotEnteredAgain(t *testing.T) {
	t.Parallel()
	k := newReused(t)
	plain := subjects.TurnKey("app", "chat", "", "turn")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.data(1, 1, 1)).Do)
	first, err := k.store.Last(t.Context(), plain.Public(events.KindToolResponse))
	require.NoError(t, err)
	body, err := events.DecodeTurn(k.data(2, 1, 2).Data)
	require.NoError(t, err)
	hash := events.Hex(events.Fingerprint(body))
	c := idempotency.Claim{Key: plain, Lease: idempotency.Lease{Stream: "IN", Seq: 2, Delivery: 1}, Fingerprint: hash, Effect: "unsafe", Event: k.claimEvent()}
	place, err := k.Journal.ChooseKey(t.Context(), c, plain.Reuse("", "turn", hash))
	require.NoError(t, err)
	require.True(t, place.Reused)
	k.store.Expire(first.Seq)
	c.Lease.Delivery = 2
	d, err := k.Journal.Claim(t.Context(), c) // by the worker of the version before
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, d.Action)
	close(k.dead)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.data(2, 3, 2)).Do)
	require.Zero(t, k.entered[2].Load(), "the other worker has entered it")
	require.Equal(t, []events.Code{events.CodeInterrupted}, k.responses())
}

// F21: see docs/faults.md. A turn of a reused key that runs is not given up because its workflow answers no invalid turns (any more).
func TestReusedKeyIsEndedAfterItsWorkflowHasBecomeSilentAndRefusesIt(t *testing.T) {
	t.Parallel()
	k := newReused(t)
	k.dies()
	k.bindFolder("on_key_reuse: refuse\ncompat: {silent: true}\n" + strings.ReplaceAll(reusedManifest, "n: {type: integer}", "n: {type: string}"))
	require.Equal(t, inbound.Ack, handlers.New(k.Config).Handle(t.Context(), k.data(2, 2, 2)).Do)
	require.Equal(t, []events.Code{events.CodeInterrupted}, k.responses())
}

func TestReusedKeyWhosePlaceCannotBeReadIsNotEntered(t *testing.T) {
	t.Parallel()
	k := newReused(t)
	body, err := events.DecodeTurn(k.data(2, 1, 2).Data)
	require.NoError(t, err)
	hash := events.Hex(events.Fingerprint(body))
	_, err = k.store.Create(t.Context(), idempotency.Record{
		Key: subjects.TurnKey("app", "chat", "", "turn").ReuseNote(hash), Err: idempotency.ErrDamaged,
	})
	require.NoError(t, err)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.data(2, 1, 2)).Do)
	require.Zero(t, k.entered[2].Load())
	require.Equal(t, []events.Code{events.CodeStateCorrupt}, k.responses())
	close(k.dead)
}
