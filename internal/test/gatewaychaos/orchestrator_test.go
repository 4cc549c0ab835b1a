//go:build chaos

package gatewaychaos_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/test/gatewaychaos"
	"github.com/oneturn/oneturn/subjects"
)

// orchestrator publishes what follows from the messages of users: turns, or texts of agents. It also keeps the journal as the test
// knows it, which it reads with another consumer than gateways have.
type orchestrator struct {
	js      jetstream.JetStream
	space   subjects.Space
	client  *oneturn.Client
	journal *gatewaychaos.Journal
	wg      sync.WaitGroup
}

// startOrchestrator runs until ctx ends.
func startOrchestrator(ctx context.Context, t *testing.T, nc *nats.Conn, space subjects.Space, journal *gatewaychaos.Journal) *orchestrator {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(2*time.Second))
	require.NoError(t, err)
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	o := &orchestrator{js: js, space: space, client: client, journal: journal}
	o.wg.Go(func() {
		for ctx.Err() == nil {
			if err := o.follow(ctx, nc); err != nil {
				_ = pause.For(ctx, 50*time.Millisecond)
			}
		}
	})
	return o
}

// errLost means that a delivery is missing, or that the connection was another one before.
var errLost = errors.New("deliveries are missing")

// follow reads records after the last one that is known, until anything fails.
func (o *orchestrator) follow(ctx context.Context, nc *nats.Conn) error {
	reconnects := nc.Stats().Reconnects                       // before there is a consumer, which a restart of the server loses
	within, cancel := context.WithTimeout(ctx, 2*time.Second) // a reply may be lost, and ctx has a deadline that is far away
	defer cancel()
	consumer, err := o.js.CreateConsumer(within, o.space.TurnsStream(), o.consumer(o.journal.Last()+1))
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	for delivered := uint64(0); ctx.Err() == nil; {
		batch, err := consumer.Fetch(500, jetstream.FetchMaxWait(200*time.Millisecond))
		if err != nil {
			return fmt.Errorf("follow: %w", err)
		}
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return fmt.Errorf("follow: %w", err)
			}
			if delivered++; meta.Sequence.Consumer != delivered {
				return errLost
			}
			r, err := o.journal.Add(meta.Sequence.Stream, m.Data())
			if err != nil {
				return err
			}
			o.react(ctx, r)
		}
		if err := batch.Error(); err != nil {
			return fmt.Errorf("follow: %w", err)
		}
		if nc.Stats().Reconnects != reconnects {
			return errLost
		}
	}
	return nil
}

func (o *orchestrator) consumer(from uint64) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		FilterSubject: o.space.JournalSubject(subjects.PublicRecords()), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: time.Minute,
	}
}

// react publishes what follows from a record, until that is acknowledged.
func (o *orchestrator) react(ctx context.Context, r *gatewaychaos.Record) {
	m, ok := r.Message()
	if !ok {
		return
	}
	o.wg.Go(func() {
		for ctx.Err() == nil {
			within, cancel := context.WithTimeout(ctx, 2*time.Second)
			err := o.publish(within, &m)
			cancel()
			if err == nil {
				return
			}
			_ = pause.For(ctx, 100*time.Millisecond)
		}
	})
}

func (o *orchestrator) publish(ctx context.Context, on *gatewaychaos.Message) error {
	if !strings.HasPrefix(on.Text, "talk") {
		_, err := o.client.Publish(ctx, turnOf(on))
		return err
	}
	for _, m := range []oneturn.Message{{Agent: "Background", Content: "a note"}, {Agent: "Speaker", Content: "Received: " + on.Text}} {
		m.MessageID = oneturn.MessageID{App: on.App, Chat: on.Chat, Message: m.Agent + "-" + on.ID}
		m.Workflow, m.UserID = talk, on.User
		if _, err := o.client.PublishMessage(ctx, &m); err != nil {
			return err
		}
	}
	return nil
}

// reaction is the id by which [gatewaychaos.Journal.Ended] knows that what follows from a message is over.
func reaction(message, text string) string {
	if strings.HasPrefix(text, "talk") {
		return "Speaker-" + message
	}
	return "reply-" + message
}

// readJournal reads the journal from its beginning.
func (o *orchestrator) readJournal(ctx context.Context, t *testing.T) *gatewaychaos.Journal {
	t.Helper()
	stream, err := o.js.Stream(ctx, o.space.TurnsStream())
	require.NoError(t, err)
	last := stream.CachedInfo().State.LastSeq
	consumer, err := o.js.CreateConsumer(ctx, o.space.TurnsStream(), o.consumer(1))
	require.NoError(t, err)
	j := gatewaychaos.NewJournal()
	for pending := consumer.CachedInfo().NumPending; pending > 0 && j.Last() < last; {
		batch, err := consumer.Fetch(500, jetstream.FetchMaxWait(2*time.Second))
		require.NoError(t, err)
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			require.NoError(t, err)
			_, err = j.Add(meta.Sequence.Stream, m.Data())
			require.NoError(t, err)
			pending = meta.NumPending
		}
		require.NoError(t, batch.Error())
	}
	return j
}
