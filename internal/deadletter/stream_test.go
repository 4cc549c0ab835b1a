package deadletter_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// letterBox is the dead letters of a dedicated server.
type letterBox struct {
	*deadletter.Stream

	t       *testing.T
	space   subjects.Space
	stream  jetstream.Stream
	blobs   jetstream.ObjectStore
	metrics *metrics.Metrics
	seq     uint64
}

func newLetterBox(t *testing.T, change func(*provision.Options)) *letterBox {
	t.Helper()
	s := oneturntest.NewServer(t)
	s.Provision(change)
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	b := &letterBox{t: t, space: space}
	b.metrics, err = metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	blobs, err := store.NewBlobs(t.Context(), nc, js, space)
	require.NoError(t, err)
	b.blobs, err = js.ObjectStore(t.Context(), space.BlobsBucket())
	require.NoError(t, err)
	b.stream, err = js.Stream(t.Context(), space.DeadStream())
	require.NoError(t, err)
	b.Stream = deadletter.New(js, space, blobs, b.metrics)
	return b
}

// put makes a message a dead letter.
func (b *letterBox) put(subject, body string, header nats.Header) {
	b.t.Helper()
	b.seq++
	require.NoError(b.t, b.Put(b.t.Context(), &inbound.Message{
		Subject: subject, Header: header, Data: []byte(body), Stored: time.Unix(int64(b.seq), 0),
		Lease: idempotency.Lease{Stream: b.space.InStream(), Seq: b.seq, Delivery: 1},
	}, "undecodable", errors.New(strings.Repeat("e", 2000))))
}

// newest is the last dead letter on a subject.
func (b *letterBox) newest(subject string) *jetstream.RawStreamMsg {
	b.t.Helper()
	m, err := b.stream.GetLastMsgForSubject(b.t.Context(), subject)
	require.NoError(b.t, err)
	return m
}

func (b *letterBox) discarded(reason string) int {
	return int(testutil.ToFloat64(b.metrics.DeadDiscarded.WithLabelValues(reason)))
}

func (b *letterBox) in(kind, app string) string { return b.space.In("default", kind, app, "W", "c") }

// H23: see docs/faults.md.
func TestFloodOfDeadLettersOfATenantDiscardsItsOwnOldestOnly(t *testing.T) {
	t.Parallel()
	b := newLetterBox(t, func(o *provision.Options) { o.DeadMaxBytes = 8 << 20 })
	b.put(b.in(events.KindStructuredOutputReady, "beta"), "beta's only copy", nil)
	share := b.stream.CachedInfo().Config.MaxMsgsPerSubject
	const flood = 60
	require.Less(t, share, int64(flood))
	large := nats.Header{"X-Large": {strings.Repeat("h", 7<<10)}}
	kinds := []string{events.KindStructuredOutputReady, events.KindCancel, "nonsense", "other nonsense"}
	for i := range flood {
		for _, kind := range kinds {
			b.put(b.in(kind, "acme"), strconv.Itoa(i)+strings.Repeat("x", 16<<10-2), large)
		}
	}
	require.Equal(t, "beta's only copy", string(b.newest("oneturn.dead.beta.structured_output_ready").Data))
	info, err := b.stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	require.Len(t, info.State.Subjects, 4, "a sender cannot add subjects")
	for _, kind := range []string{events.KindStructuredOutputReady, events.KindCancel, "unknown"} {
		require.EqualValues(t, share, info.State.Subjects["oneturn.dead.acme."+kind])
		require.True(t, strings.HasPrefix(string(b.newest("oneturn.dead.acme."+kind).Data), strconv.Itoa(flood-1)), "the newest stays")
	}
	require.Equal(t, 4*flood-3*int(share), b.discarded("tenant_share"), "each that went is counted")
	require.Zero(t, b.discarded("stream_full"))
}

// H23: see docs/faults.md.
func TestLargeBytesOfDeadLettersAreInBlobsThatNewerDeadLettersOfTheTenantReuse(t *testing.T) {
	t.Parallel()
	b := newLetterBox(t, func(*provision.Options) {})
	beta := strings.Repeat("b", 20<<10)
	b.put(b.in(events.KindCancel, "beta"), beta, nil)
	const flood = 2 * subjects.DeadBlobs
	for i := range flood {
		b.put(b.in(events.KindCancel, "acme"), strconv.Itoa(i)+strings.Repeat("a", 20<<10), nil)
	}
	held := func(m *jetstream.RawStreamMsg) bool {
		require.Empty(t, m.Data)
		data, err := b.blobs.GetBytes(t.Context(), m.Header.Get(deadletter.HeaderBlob))
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:]) == m.Header.Get(deadletter.HeaderSHA256)
	}
	require.True(t, held(b.newest("oneturn.dead.beta.cancel")))
	require.Equal(t, strconv.Itoa(len(beta)), b.newest("oneturn.dead.beta.cancel").Header.Get(deadletter.HeaderSize))
	for i := range uint64(flood) {
		m, err := b.stream.GetMsg(t.Context(), 2+i)
		require.NoError(t, err)
		require.Equal(t, i >= flood-subjects.DeadBlobs, held(m), "dead letter %d of %d", i, flood)
	}
	objects, err := b.blobs.List(t.Context())
	require.NoError(t, err)
	require.Len(t, objects, 1+subjects.DeadBlobs)
	require.Equal(t, flood-subjects.DeadBlobs, b.discarded("tenant_share"))
}

func TestDeadLetterWhoseBytesAreRefusedKeepsTheirHashAndTheReason(t *testing.T) {
	t.Parallel()
	b := newLetterBox(t, func(o *provision.Options) { o.BlobsMaxBytes = 1 << 20 })
	body := strings.Repeat("x", 700<<10)
	b.put(b.in(events.KindCancel, "acme"), body, nil)
	require.NotEmpty(t, b.newest("oneturn.dead.acme.cancel").Header.Get(deadletter.HeaderBlob))
	body = strings.Repeat("y", 700<<10)
	b.put(b.in(events.KindCancel, "acme"), body, nil)
	m := b.newest("oneturn.dead.acme.cancel")
	sum := sha256.Sum256([]byte(body))
	require.Equal(t, hex.EncodeToString(sum[:]), m.Header.Get(deadletter.HeaderSHA256))
	require.Equal(t, strconv.Itoa(len(body)), m.Header.Get(deadletter.HeaderSize))
	require.Contains(t, m.Header.Get(deadletter.HeaderNotKept), "is full")
	require.Empty(t, m.Header.Get(deadletter.HeaderBlob))
	require.Equal(t, 1, b.discarded("blobs_full"))
}

func TestLargestDeadLetterIsAtMostAsLargeAsItsShareCounts(t *testing.T) {
	t.Parallel()
	b := newLetterBox(t, func(*provision.Options) {})
	headers := nats.Header{"X-Large": {strings.Repeat("h", 8<<10-20)}, "X-More": {strings.Repeat("h", 40<<10)}}
	b.put(b.in(events.KindCancel, "acme")+strings.Repeat("x", 3000), strings.Repeat("x", 16<<10), headers)
	info, err := b.stream.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, info.State.Msgs)
	require.NotEmpty(t, b.newest("oneturn.dead.>").Data)
	require.LessOrEqual(t, info.State.Bytes, uint64(provision.DeadLetterBytes))
}
