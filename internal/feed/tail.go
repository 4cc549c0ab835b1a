package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/presence"
	"github.com/oneturn/oneturn/subjects"
)

// The tail is an ephemeral consumer without acknowledgements that begins at the end of the journal. Its deliveries are numbered: where
// a number is missing, where the connection or the consumer was lost, another consumer takes its place.
//
// A consumer that begins earlier has the server count what it has to deliver: it goes through the names of all records, and nothing
// is stored meanwhile, for a quarter of a second with 400,000 of them. So each one begins at the end, and the records between the last
// one that was routed and its beginning are read one by one. Only where they are many does it begin earlier.

const (
	tailRecords   = 512              // requested together
	tailBytes     = 16 << 20         // at most, of those
	tailHeartbeat = time.Second      // without two of them the consumer counts as lost
	tailExpiry    = 10 * time.Second // of a request
	tailIdle      = 30 * time.Second // after which the server removes a consumer whose client is gone
	tailPause     = 100 * time.Millisecond
	tailMissed    = 10_000 // records that are read one by one at most
	missedAtOnce  = 64     // of those
)

var (
	errGap       = errors.New("deliveries are missing")
	errReconnect = errors.New("the connection was lost")
	errBehind    = errors.New("the journal ends before records that it has delivered")
)

// followTail follows the end of the journal until the feed ends. A loss is logged when it begins, and again after growing times as long
// as it lasts.
func (f *Feeds) followTail() {
	f.wg.Go(f.watch)
	for f.life.Err() == nil {
		begun := time.Now()
		err := f.consume(f.life)
		if f.life.Err() != nil {
			return
		}
		f.setTail(err)
		if f.outage.report(begun, time.Now()) {
			f.o.Logger.Info("feed: the end of the journal is not followed: another consumer is tried", "reason", Reason(err), "tries", f.outage.tries)
		}
		_ = pause.For(f.life, f.outage.pause()) // ends early with the feed
	}
}

// setTail remembers why the end of the journal is not followed, nil if it is.
func (f *Feeds) setTail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tail = err; err != nil {
		f.tail = fmt.Errorf("feed: follow the journal: %w", err)
	}
}

// at returns the sequence up to which everything was routed.
func (f *Feeds) at() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position
}

// consume routes the records of one consumer until it is lost.
func (f *Feeds) consume(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	status := f.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer f.nc.RemoveStatusListener(status)
	last, err := f.same(ctx)
	if err != nil {
		return err
	}
	consumer, err := f.js.CreateConsumer(ctx, f.space.TurnsStream(), f.tailConsumer(last))
	if err != nil {
		return fmt.Errorf("create the consumer: %w", err)
	}
	name := consumer.CachedInfo().Name
	defer f.remove(name)
	if _, err := f.same(ctx); err != nil { // else it could deliver records of a new journal
		return err
	}
	if err := f.readMissed(ctx, consumer.CachedInfo().Delivered.Stream); err != nil {
		return err
	}
	messages, err := consumer.Messages(
		jetstream.PullMaxMessagesWithBytesLimit(tailRecords, max(tailBytes, 2*int(f.nc.MaxPayload()))),
		jetstream.PullExpiry(tailExpiry), jetstream.PullHeartbeat(tailHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true),
	)
	if err != nil {
		return fmt.Errorf("open the consumer: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		select {
		case <-status:
			cancel(errReconnect)
		case <-ctx.Done():
		}
		messages.Stop()
	})
	f.setTail(nil)
	f.setTailState(tailState{consumer: name})
	defer f.setTailState(tailState{})
	if f.outage.over() {
		f.o.Logger.Info("feed: the end of the journal is followed again", "tries", f.outage.tries)
	}
	for delivered := uint64(1); ; delivered++ {
		m, err := messages.Next()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("next record: %w", err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("next record: %w", err)
		}
		if meta.Sequence.Consumer != delivered {
			return errGap
		}
		f.routeMessage(m, meta)
	}
}

// tailConsumer returns the settings of a consumer for a journal with a last sequence.
func (f *Feeds) tailConsumer(last uint64) jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{
		FilterSubject: f.space.JournalSubject(subjects.PublicRecords()), DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: tailIdle,
	}
	if at := f.at(); last > at+tailMissed {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, at+1
	}
	return cfg
}

// readMissed routes the records up to a sequence, after which a consumer begins.
func (f *Feeds) readMissed(ctx context.Context, upTo uint64) error {
	for from := f.at() + 1; from <= upTo; from += missedAtOnce {
		var found [missedAtOnce]*idempotency.Record
		var reads errgroup.Group
		for n := range min(missedAtOnce, upTo-from+1) {
			reads.Go(func() error {
				r, err := f.journal.At(ctx, from+n)
				switch {
				case err == nil:
					found[n] = &r
				case errors.Is(err, idempotency.ErrNotFound): // it was replaced
					err = nil
				}
				return err
			})
		}
		if err := reads.Wait(); err != nil {
			return fmt.Errorf("read the records before the consumer: %w", err)
		}
		for _, r := range found {
			if r == nil {
				continue
			}
			if name, ok := subjects.ParseKey(r.Key); ok && !name.Private {
				f.route(name, r.Seq, 0, func() *idempotency.Record { return r })
			}
		}
	}
	return nil
}

// routeMessage routes a record that the consumer has delivered.
func (f *Feeds) routeMessage(m jetstream.Msg, meta *jetstream.MsgMetadata) {
	key, _ := f.space.JournalKeyOf(m.Subject())
	name, ok := subjects.ParseKey(key)
	if !ok {
		name = subjects.Record{} // of no chat
	}
	f.route(name, meta.Sequence.Stream, meta.Sequence.Consumer, func() *idempotency.Record {
		r := &idempotency.Record{Key: key, Data: m.Data(), Seq: meta.Sequence.Stream, Time: meta.Timestamp}
		r.Meta, r.Err = idempotency.ParseMeta(m.Headers().Get)
		return r
	})
}

// remove deletes a consumer. If that fails, the server does it after [tailIdle].
func (f *Feeds) remove(consumer string) {
	if !f.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.life), time.Second)
	defer cancel()
	_ = f.js.DeleteConsumer(ctx, f.space.TurnsStream(), consumer)
}

// same returns the last sequence of the journal, and an error if the journal is not the one that the feed began with, or lacks records
// that it has delivered.
func (f *Feeds) same(ctx context.Context) (last uint64, err error) {
	at := f.at()
	info, err := jsapi.Info(ctx, f.nc, f.space.TurnsStream(), "", 0)
	switch {
	case err != nil:
		return 0, fmt.Errorf("check the journal: %w", err)
	case !info.Created.Equal(f.created):
		f.end(ErrJournalReplaced)
		return 0, ErrJournalReplaced
	case info.State.LastSeq < at:
		return 0, errBehind
	}
	return info.State.LastSeq, nil
}

// watch checks that the journal is the same, until the feed ends. One check that does not find it, or finds it shorter, proves nothing
// (see package presence): a second one does.
func (f *Feeds) watch() {
	journal := presence.New("journal", ErrJournalReplaced)
	behind := presence.New("journal", ErrJournalReplaced)
	for pause.For(f.life, f.o.CheckEvery) == nil {
		switch _, err := f.same(f.life); {
		case err == nil:
			_, _ = journal.Found(time.Time{}, ""), behind.Found(time.Time{}, "")
		case errors.Is(err, errBehind) && behind.Missing("") != nil:
			f.end(ErrJournalReplaced)
		case jsapi.Code(err) == jetstream.JSErrCodeStreamNotFound && journal.Missing("") != nil:
			f.end(ErrJournalReplaced)
		}
	}
}
