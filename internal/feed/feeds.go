package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// Errors that end followers for good.
var (
	ErrClosed          = errors.New("the feed is closed")
	ErrJournalReplaced = errors.New("the journal was deleted or created again: open the feed again, cursors of the old journal mean nothing")
)

// Defaults of [Options].
const (
	DefaultQueueBytes  = 256 << 10
	DefaultReads       = 16
	DefaultPageRecords = 256
	DefaultCheckEvery  = time.Second
)

// Options are the bounds of [Feeds]. Zero fields take the defaults.
type Options struct {
	QueueBytes  int           // events of a follower that wait in memory; defaults to 256 KiB
	Reads       int           // pages that are read at the same time, half of them for one tenant at most, a quarter for one user; defaults to 16
	PageRecords int           // records of a page; defaults to 256
	CheckEvery  time.Duration // between checks that the journal is the same; defaults to 1 s
	Logger      *slog.Logger  // defaults to none
	// Damaged is called with the key and the sequence of each record that followers do not get since it cannot be read; often for the
	// same one, from several goroutines, and without locks. Defaults to nothing.
	Damaged func(key string, sequence uint64)
}

func (o Options) withDefaults() Options {
	o.QueueBytes = cmp.Or(o.QueueBytes, DefaultQueueBytes)
	o.Reads = cmp.Or(o.Reads, DefaultReads)
	o.PageRecords = cmp.Or(o.PageRecords, DefaultPageRecords)
	o.CheckEvery = cmp.Or(o.CheckEvery, DefaultCheckEvery)
	if o.Damaged == nil {
		o.Damaged = func(string, uint64) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Feeds is one subscription to the events of all chats, which it routes to followers. It is safe for concurrent use.
type Feeds struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	space  subjects.Space
	reader *query.Reader
	// journal is read by sequence.
	journal *kvstore.Store
	o       Options

	created time.Time // of the journal
	reads   *places
	outage  outage // of the end of the journal
	pages   pages  // that are read now

	life context.Context         //nolint:containedctx // ends with ErrClosed or ErrJournalReplaced
	end  context.CancelCauseFunc // of life; the first cause counts
	wg   sync.WaitGroup

	mu       sync.Mutex
	position uint64 // every public record up to this sequence was routed
	chats    map[chat]map[*Follower]struct{}
	tail     error     // why the end of the journal is not followed now
	state    tailState // counts what was routed
}

// flushTime bounds the wait for the server when a feed is opened.
const flushTime = 10 * time.Second

// errNotFollowed is why a feed is not ready when it was opened.
var errNotFollowed = errors.New("feed: the end of the journal is not reached yet")

// Open subscribes to the events of all chats. The context bounds the opening alone; [Feeds.Close] ends the feed. The reader should
// have a connection that nothing urgent shares: the server handles the requests of a connection one by one.
func Open(ctx context.Context, nc *nats.Conn, space subjects.Space, reader *query.Reader, o Options) (*Feeds, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	f := &Feeds{
		nc: nc, js: js, space: space, reader: reader, journal: kvstore.Read(nc, space), o: o.withDefaults(),
		chats: map[chat]map[*Follower]struct{}{}, tail: errNotFollowed,
	}
	f.reads = newPlaces(f.o.Reads)
	info, err := jsapi.Info(ctx, nc, space.TurnsStream(), "", 0)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	f.created, f.position = info.Created, info.State.LastSeq
	live, err := nc.Subscribe(space.LiveEvents(), f.routeLive)
	if err != nil {
		return nil, fmt.Errorf("feed: subscribe to live events: %w", err)
	}
	flushing, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if err := nc.FlushWithContext(flushing); err != nil { // else events that others send now may pass before the server knows it
		_ = live.Unsubscribe() // fails only on a closed connection
		return nil, fmt.Errorf("feed: subscribe to live events: %w", err)
	}
	f.life, f.end = context.WithCancelCause(context.WithoutCancel(ctx))
	f.wg.Go(func() {
		defer func() { _ = live.Unsubscribe() }() // fails only on a closed connection
		f.followTail()
	})
	return f, nil
}

// Close ends the feed: followers return [ErrClosed].
func (f *Feeds) Close() {
	f.end(ErrClosed)
	f.wg.Wait()
}

// Ready returns nil while the end of the journal is followed, or why it is not.
func (f *Feeds) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.life.Err() != nil:
		return context.Cause(f.life)
	case !f.nc.IsConnected(): // before what fails by that
		return fmt.Errorf("feed: no connection to NATS: %w", nats.ErrDisconnected)
	case f.tail != nil:
		return f.tail
	}
	return nil
}
