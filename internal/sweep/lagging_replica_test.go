package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/sweep"
)

// lagging places the first readers of a stream on a replica that has no message after a sequence.
type lagging struct {
	jetstream.JetStream

	has     uint64 // the last sequence that the replica has
	readers int    // that are placed on it
	opened  int
}

func (l *lagging) OrderedConsumer(ctx context.Context, stream string, c jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	consumer, err := l.JetStream.OrderedConsumer(ctx, stream, c)
	if l.opened++; err != nil || l.opened > l.readers {
		return consumer, err
	}
	return laggingReader{Consumer: consumer, has: l.has, empty: c.OptStartSeq > l.has}, nil
}

type laggingReader struct {
	jetstream.Consumer

	has   uint64
	empty bool
}

func (r laggingReader) CachedInfo() *jetstream.ConsumerInfo {
	info := *r.Consumer.CachedInfo()
	if r.empty {
		info.NumPending = 0
	}
	return &info
}

func (r laggingReader) Messages(opts ...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	messages, err := r.Consumer.Messages(opts...)
	return laggingMessages{messages, r.has}, err
}

type laggingMessages struct {
	jetstream.MessagesContext

	has uint64
}

func (m laggingMessages) Next(opts ...jetstream.NextOpt) (jetstream.Msg, error) {
	msg, err := m.MessagesContext.Next(opts...)
	return laggingMsg{msg, m.has}, err
}

type laggingMsg struct {
	jetstream.Msg

	has uint64
}

func (m laggingMsg) Metadata() (*jetstream.MsgMetadata, error) {
	meta, err := m.Msg.Metadata()
	if err == nil && meta.Sequence.Stream >= m.has {
		meta.NumPending = 0
	}
	return meta, err
}

// F15: what a replica does not have yet is read from another one, or the read fails.
func TestHeadersAreReadToTheLastOrFailWhenAReplicaLags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has     uint64
		readers int
		fails   bool
	}{
		"the replica has none":                         {0, 1, false},
		"the replica has some":                         {4, 1, false},
		"two replicas lag":                             {4, 2, false},
		"the replica has all but the last":             {9, 1, false},
		"each reader is placed on a replica that lags": {4, 100, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestSweep(t)
			b.orphans(10)
			js := &lagging{JetStream: b.JS, has: c.has, readers: c.readers}
			var read []uint64
			err := jsapi.Headers{JS: js}.Read(t.Context(), b.Space.TurnsStream(), 1, 10, func(_ jetstream.Msg, m *jetstream.MsgMetadata) {
				read = append(read, m.Sequence.Stream)
			})
			if c.fails {
				require.ErrorContains(t, err, "lacks messages that the leader has")
				require.Equal(t, []uint64{1, 2, 3, 4}, read)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, read)
		})
	}
}

func TestHeadersAreReadOnceWhenTheLastMessagesAreGone(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	for range 10 {
		_, err := b.JS.Publish(t.Context(), b.Space.Prefix()+".dead.app.kind", nil)
		require.NoError(t, err)
	}
	stream, err := b.JS.Stream(t.Context(), b.Space.DeadStream())
	require.NoError(t, err)
	for seq := uint64(8); seq <= 10; seq++ {
		require.NoError(t, stream.DeleteMsg(t.Context(), seq))
	}
	js := &lagging{JetStream: b.JS, has: 10, readers: 100}
	for start, want := range map[uint64]int{1: 7, 9: 0} {
		js.opened = 0
		n := 0
		require.NoError(t, jsapi.Headers{JS: js, Timeout: time.Second}.Read(t.Context(), b.Space.DeadStream(), start, 10,
			func(jetstream.Msg, *jetstream.MsgMetadata) { n++ }))
		require.Equal(t, want, n)
		require.Equal(t, 1, js.opened)
	}
}

// F15: a sweep whose reads come from a node that lags takes nothing for read that it has not seen.
func TestSweepFindsTurnsThatALaggingReplicaDidNotHave(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(10)
	whole := b.JS
	b.JS = &lagging{JetStream: whole, has: 4, readers: 100}
	_, err := b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, nothingToDo)
	require.Error(t, err)
	b.JS = whole
	found := map[string]bool{}
	_, err = b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, func(_ context.Context, f sweep.Finding) (uint64, error) {
		found[f.Key.String()] = true
		return 0, nil
	})
	require.NoError(t, err)
	require.Len(t, found, 10)
}

func nothingToDo(context.Context, sweep.Finding) (uint64, error) { return 0, nil }
