package kvstore_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// remake deletes the bucket and, if again is true, creates one of the same name.
func remake(t *testing.T, s *oneturntest.Server, again bool) {
	t.Helper()
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_TURNS"))
	if again {
		storetest.Bucket(t, nc)
	}
}

func record(id string) idempotency.Record {
	return idempotency.Record{Key: key.Private("step", id), Meta: idempotency.Meta{Nonce: id, Epoch: 1}}
}

// TestNothingIsClaimedInABucketThatWasCreatedAgain: it has forgotten every turn, so the claim that
// it takes means nothing.
func TestNothingIsClaimedInABucketThatWasCreatedAgain(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	require.NoError(t, kv.Check(t.Context()))
	j := idempotency.New(kv, "w", idempotency.Options{})
	c := idempotency.Claim{Key: key, Effect: "unsafe", Lease: idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}}
	d, err := j.Claim(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, d.Action)
	require.NoError(t, kv.Err())

	remake(t, s, true)
	d, err = j.Claim(t.Context(), c)
	require.ErrorIs(t, err, idempotency.ErrGone)
	require.ErrorContains(t, err, "turnctl provision")
	require.Equal(t, idempotency.Leave, d.Action)
	<-kv.Gone()

	_, err = kv.Create(t.Context(), record("a"))
	require.ErrorIs(t, err, idempotency.ErrGone, "and stays so")
	_, err = j.Finish(t.Context(), d.Hold, []byte(`{}`))
	require.ErrorIs(t, err, idempotency.ErrGone)
	_, err = kv.Last(t.Context(), key.Public(events.KindToolResponse))
	require.ErrorIs(t, err, idempotency.ErrNotFound, "a response was stored where the claim is not known")
}

// TestBucketThatHasLostRecordsIsNotTrusted: sequences only grow.
func TestBucketThatHasLostRecordsIsNotTrusted(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	_, err = nc.Subscribe(space.JournalSubject(">"), func(m *nats.Msg) { // a server with a bad memory
		_ = m.Respond(map[bool][]byte{true: []byte(`{"stream":"S","seq":9}`), false: []byte(`{"stream":"S","seq":8}`)}[m.Header.Get(idempotency.HeaderNonce) == "a"])
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	kv := storetest.Open(t, s.Connect(), space)
	_, err = kv.Create(t.Context(), record("a"))
	require.NoError(t, err)
	_, err = kv.Create(t.Context(), record("b"))
	require.ErrorIs(t, err, idempotency.ErrGone)
	require.ErrorContains(t, err, "lost records")
}

// TestBucketThatWasCreatedAgainIsNoticedWithoutAWrite: an idle worker has nothing to store.
func TestBucketThatWasCreatedAgainIsNoticedWithoutAWrite(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	require.NoError(t, kv.Check(t.Context()))
	require.NoError(t, kv.Check(t.Context()))
	remake(t, s, true)
	require.ErrorIs(t, kv.Check(t.Context()), idempotency.ErrGone)
	require.ErrorIs(t, kv.Err(), idempotency.ErrGone)
}

// TestWriteToABucketThatWasDeletedEndsOnceTheServerHasDeniedItTwice: it is not repeated until
// there is a bucket again.
func TestWriteToABucketThatWasDeletedEndsOnceTheServerHasDeniedItTwice(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	require.NoError(t, kv.Check(t.Context()))
	remake(t, s, false)
	require.NoError(t, kv.Check(t.Context()), "a cluster that has just started may deny a stream for a moment")
	begin := time.Now()
	_, err := idempotency.New(kv, "w", idempotency.Options{}).Claim(t.Context(), idempotency.Claim{Key: key, Effect: "unsafe"})
	require.ErrorIs(t, err, idempotency.ErrGone)
	require.Less(t, time.Since(begin), 10*time.Second)
}

// TestWorkerDoesNotEndWhenTheServerCannotBeReached: its records are still there when it can.
func TestWorkerDoesNotEndWhenTheServerCannotBeReached(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	require.NoError(t, kv.Check(t.Context()))
	require.NoError(t, s.Stop())
	_, err := kv.Create(t.Context(), record("a"))
	require.Error(t, err)
	require.NotErrorIs(t, err, idempotency.ErrGone)
	require.NoError(t, kv.Check(t.Context()))
	require.NoError(t, kv.Err())
}
