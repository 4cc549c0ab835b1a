package kvstore_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func TestKVKeepsTheStoreContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) idempotency.Store {
		t.Helper()
		nc := oneturntest.NewServer(t).Connect()
		return storetest.Open(t, nc, storetest.Bucket(t, nc))
	})
}

func TestHeadersOfARecordDoNotReachTheNext(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	for i, meta := range []idempotency.Meta{
		{
			Owner: "w", Nonce: "n", Epoch: 1, Lease: idempotency.Lease{Stream: "IN", Seq: 1234, Delivery: 2}, Effect: "keyed",
			Digest: "d", Fingerprint: "f", Outcome: "too_old", Trace: "00-11-22-01",
		},
		{Owner: "w", Nonce: "other", Epoch: 2},
		{Owner: "w", Nonce: "third", Epoch: 3, Outcome: "parked"},
	} {
		id := strconv.Itoa(i)
		seq, err := kv.Create(t.Context(), idempotency.Record{Key: key.Private("park", id), Meta: meta, Data: []byte(id)})
		require.NoError(t, err)
		got, err := kv.At(t.Context(), seq)
		require.NoError(t, err)
		require.Equal(t, meta, got.Meta)
		require.Equal(t, id, string(got.Data))
	}
}

func TestSubscribersSeeStoredPublicRecordsOnly(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	kv := storetest.Open(t, nc, space)
	sub, err := nc.SubscribeSync(space.EventsPrefix() + ".>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	for _, nonce := range []string{"winner", "loser"} {
		for _, k := range []string{key.Private("park", "1"), key.Public("tool_call")} {
			_, err = kv.Create(t.Context(), idempotency.Record{
				Key: k, Meta: idempotency.Meta{Owner: "w", Nonce: nonce, Epoch: 1}, Data: []byte(nonce),
			})
			if nonce == "winner" {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		}
	}
	m, err := sub.NextMsg(5 * time.Second)
	require.NoError(t, err)
	require.Equal(t, space.EventsPrefix()+"."+strings.TrimPrefix(key.Public("tool_call"), "e."), m.Subject)
	require.Equal(t, "winner", string(m.Data))
	require.Equal(t, "2", m.Header.Get("Nats-Sequence"))
	require.NoError(t, nc.Flush())
	pending, _, err := sub.Pending()
	require.NoError(t, err)
	require.Zero(t, pending)
}

// F20: see docs/faults.md.
func TestDamagedAndDeletedRecordsFailClosed(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	kv := storetest.Open(t, nc, space)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	store, err := js.KeyValue(t.Context(), space.TurnsBucket())
	require.NoError(t, err)
	for name, damage := range map[string]func(k string) error{
		"foreign value": func(k string) error { _, err := store.PutString(t.Context(), k, "not ours"); return err },
		"tombstone":     func(k string) error { return store.Delete(t.Context(), k) },
		"bad epoch": func(k string) error {
			_, err := js.PublishMsg(t.Context(), &nats.Msg{
				Subject: space.JournalSubject(k),
				Header:  nats.Header{idempotency.HeaderEpoch: {"x"}, idempotency.HeaderOwner: {"w"}, idempotency.HeaderNonce: {"n"}},
			})
			return err
		},
	} {
		c := claim("idempotent", 2)
		c.Key = subjects.TurnKey("app", "chat", "", name)
		require.NoError(t, damage(c.Key.Public("tool_call")))
		d := decide(t, kv, c)
		require.Equal(t, idempotency.EndTurn, d.Action, name)
		require.Equal(t, "state_corrupt", string(d.Code), name)
	}
}

func TestCreateOfARecordTheServerCannotTakeIsRefusedImmediately(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	c := claim("unsafe", 1)
	c.Event = make([]byte, nc.MaxPayload())
	_, err := newJournal(kv).Claim(t.Context(), c)
	require.ErrorIs(t, err, idempotency.ErrRefused)
}

func TestMissingBucketIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	late := func(context.Context, time.Duration) error { return context.DeadlineExceeded }
	_, err = idempotency.New(storetest.Open(t, nc, space), "w", idempotency.Options{Pause: late}).Claim(t.Context(), claim("unsafe", 1))
	require.ErrorIs(t, err, context.DeadlineExceeded, "it would be tried again")
	require.ErrorIs(t, err, nats.ErrNoResponders)
}

// cutter is a dialer whose connections can be cut after the next bytes have left.
type cutter struct {
	mu   sync.Mutex
	cut  bool
	conn net.Conn
}

func (c *cutter) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	return &cutConn{Conn: conn, cutter: c}, err
}

type cutConn struct {
	net.Conn

	cutter *cutter
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.cutter.mu.Lock()
	defer c.cutter.mu.Unlock()
	if c.cutter.cut && strings.Contains(string(b[:n]), `"seq":`) {
		c.cutter.cut = false
		_ = c.Close()
		return 0, errors.New("cut")
	}
	return n, err
}

// F09: the server stored the claim, the answer
// was lost with the connection. The claim is sent again after the reconnect and is ours.
func TestClaimWhoseAcknowledgementIsCutOffIsRecognised(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t)
	space := storetest.Bucket(t, server.Connect())
	dialer := &cutter{}
	kv := storetest.Open(t, server.Connect(nats.SetCustomDialer(dialer)), space)
	dialer.mu.Lock()
	dialer.cut = true
	dialer.mu.Unlock()
	unknown := 0
	j := idempotency.New(kv, "w", idempotency.Options{OnUnknownWrite: func() { unknown++ }})
	d, err := j.Claim(t.Context(), claim("unsafe", 1))
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, d.Action)
	require.Equal(t, uint64(1), d.Hold.Token, "the first write was stored and is ours")
	require.Positive(t, unknown)
}

// TestAnswerToAnEarlierCreateIsNotTakenForThisOne plays a server whose answers come late, or
// twice, as they may when its leader changes.
func TestAnswerToAnEarlierCreateIsNotTakenForThisOne(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	nc := server.Connect()
	var late, last string // reply subjects
	_, err = nc.Subscribe(space.JournalSubject(">"), func(m *nats.Msg) {
		send := func(reply, ack string) { _ = nc.Publish(reply, []byte(`{"stream":"S",`+ack+`}`)) }
		switch nonce := m.Header.Get(idempotency.HeaderNonce); nonce {
		case "silent":
			late = m.Reply
		case "after silence":
			send(late, `"seq":9`)
			send(m.Reply, `"seq":3`)
		case "after an answer":
			send(last, `"seq":3`)
			send(m.Reply, `"seq":4`)
		case "undecided":
			send(m.Reply, `"error":{"err_code":10164,"description":"in process"}`)
		case "after a refusal": // by one server, while another one stores the record
			send(last, `"seq":5`)
			send(m.Reply, `"seq":6`)
		case "refused":
			send(m.Reply, `"error":{"err_code":10071,"description":"wrong last sequence: 1"}`)
		}
		last = m.Reply
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	kv := storetest.Open(t, server.Connect(), space)
	create := func(nonce string) (uint64, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return kv.Create(ctx, idempotency.Record{Key: key.Public("tool_call"), Meta: idempotency.Meta{Owner: "w", Nonce: nonce, Epoch: 1}})
	}
	_, err = create("silent")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	seq, err := create("after silence")
	require.NoError(t, err)
	require.Equal(t, uint64(3), seq)
	seq, err = create("after an answer")
	require.NoError(t, err)
	require.Equal(t, uint64(4), seq)
	_, err = create("undecided")
	require.ErrorIs(t, err, idempotency.ErrUndecided)
	seq, err = create("after a refusal")
	require.NoError(t, err)
	require.Equal(t, uint64(6), seq)
	_, err = create("refused")
	var exists *idempotency.ExistsError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, uint64(1), exists.Seq)
}

func BenchmarkClaimAndFinish(b *testing.B) {
	nc := oneturntest.NewServer(b).Connect()
	j := newJournal(storetest.Open(b, nc, storetest.Bucket(b, nc)))
	event := make([]byte, 1024)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := claim("unsafe", 1)
			c.Event = event
			c.Key.Turn = idempotency.NewNonce()
			d, err := j.Claim(b.Context(), c)
			if err != nil || d.Action != idempotency.Run {
				b.Fatal(d, err)
			}
			if _, err := j.Finish(b.Context(), d.Hold, event); err != nil {
				b.Fatal(err)
			}
		}
	})
}
