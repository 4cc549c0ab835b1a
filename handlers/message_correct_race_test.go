package handlers_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

// lateStore is a store on which something happens right after the first read of a key.
type lateStore struct {
	*storetest.Memory

	key  string
	then func()
}

func (s *lateStore) Last(ctx context.Context, key string) (idempotency.Record, error) {
	r, err := s.Memory.Last(ctx, key)
	if then := s.then; key == s.key && then != nil {
		s.then = nil
		then()
	}
	return r, err
}

// LastOf reads one key after the other, as [lateStore.Last] does.
func (s *lateStore) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, s.Last, keys)
}

// staleStore is a store whose first read of a key misses the record.
type staleStore struct {
	*storetest.Memory

	key string
}

func (s *staleStore) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, func(ctx context.Context, key string) (idempotency.Record, error) {
		if key == s.key {
			s.key = ""
			return idempotency.Record{}, idempotency.ErrNotFound
		}
		return s.Last(ctx, key)
	}, keys)
}

// published is the same message once more, as its producer publishes it.
func published(m *inbound.Message) *inbound.Message {
	next := *m
	next.Lease.Seq += 100
	return &next
}

// other is a worker with other manifests and the same journal.
func (k *correctionKit) other(set func() *bindings.Set) *handlers.Handlers {
	c := k.Config
	c.Bindings, c.Journal = set, idempotency.New(k.store, "other", idempotency.Options{})
	return handlers.New(c)
}

func TestDuplicateThatMissesTheReplyOfACorrectionDoesNotConflict(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 2, "", always(`{"title":"Shop"}`))
	m := k.writes("m1", "Architect", `{"name":"Shop"}`)
	second := k.other(k.Bindings)
	reply := subjects.MessageKey("app", "chat", "", "m1").WithCall("c1").Public(events.KindToolResponse)
	k.Journal = idempotency.New(&lateStore{Memory: k.store, key: reply, then: func() {
		require.Equal(t, inbound.Ack, second.Handle(t.Context(), published(m)).Do)
	}}, "w", idempotency.Options{})
	k.handled(m)
	require.Empty(t, k.deadReasons())
	require.EqualValues(t, 1, k.asked.Load())
	require.EqualValues(t, 1, k.entered.Load())
	require.Equal(t, true, k.responseOf("m1~1")["success"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestDuplicateWhoseWorkerHasNoModelToAskDoesNotConflict(t *testing.T) {
	t.Parallel()
	without := newCorrectionKit(t, 0, "", always("")).Bindings
	var k *correctionKit
	var m *inbound.Message
	k = newCorrectionKit(t, 2, "", func(_ int64, w io.Writer) {
		if k.other(without).Handle(t.Context(), published(m)).Do == inbound.Ack {
			_, _ = io.WriteString(w, completed(`{"title":"Shop"}`, "stop"))
		}
	})
	m = k.writes("m1", "Architect", `{"name":"Shop"}`)
	k.handled(m)
	k.handled(again(m))
	require.Empty(t, k.deadReasons())
	require.Zero(t, k.entered.Load())
	require.Equal(t, "unknown_tool", k.responseOf("m1~1")["code"], "the claim that was first counts")
	require.Nil(t, k.responseOf("m1~2"))
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestReadThatMissesTheClaimOfATurnDoesNotEndItsCorrections(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 2, "", always(`{"title":"Shop"}`))
	stale := &staleStore{k.store, subjects.TurnKey("app", "chat", "", "m1").Public(events.KindToolCall)}
	k.Journal = idempotency.New(stale, "w", idempotency.Options{})
	m := k.writes("m1", "Architect", `{"name":"Shop"}`)
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
	require.Empty(t, stale.key, "it was read")
	require.Equal(t, true, k.responseOf("m1")["correcting"])
	require.Nil(t, k.of("m1", "handoff"))
	k.handled(again(m))
	require.Equal(t, true, k.responseOf("m1~1")["success"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}
