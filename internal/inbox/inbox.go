package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/presence"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// This file has the options of an inbox, its life (Run: it checks the consumer, starts the loops, waits, and drains), and
// the checks of its consumer. doc.go lists where its messages go.

// Options of an [Inbox]. Stream, Consumer, Handle and Slots are required.
type Options struct {
	Stream   string
	Consumer string // durable pull consumer with explicit acknowledgement
	Slots    int    // how many messages are handled at the same time, without those whose slot is released ([Delivery.Release])
	// Handle processes a message and settles it. ctx ends, with the stop cause given to Run, when the handler has to
	// return.
	Handle func(ctx context.Context, d *Delivery)
	// AckWait is the ack wait of the consumer when the inbox begins. It is read again after a reconnect and every
	// Reread, which defaults to a minute; heartbeats follow the smaller one of the last two values.
	AckWait, Reread time.Duration
	// OnConfig, if not nil, is called with the consumer's configuration whenever it has been read.
	OnConfig func(jetstream.ConsumerConfig)
	// SoftStop is how long a drain waits for handlers before it ends their context, HardStop
	// how long after that it still waits. Default to 25 s and 15 s.
	SoftStop, HardStop time.Duration
	Logger             *slog.Logger // defaults to discarding
}

// ErrGone reports that the stream or consumer does not exist (any more). A worker never creates
// it again: an empty queue or journal would run old turns again.
var ErrGone = presence.ErrGone

// ErrDraining is why an inbox that stops is not ready.
var ErrDraining = errors.New("draining: it takes no new messages and stops when its tools have ended")

// ErrClosed reports that the NATS connection is closed and will not reconnect.
var ErrClosed = errors.New("the NATS connection is closed")

// Inbox pulls messages and has them handled.
type Inbox struct {
	nc   *nats.Conn
	link Link                 // to the server: nc, or a simulated one
	now  func() time.Duration // since an instant
	// start is spawn; nil in [Steps], whose caller runs the handlers.
	start func(*Delivery)
	// unread returns how many messages are in the buffers of the connection, and whether anything is received: pending,
	// or a simulated one.
	unread    func() (int, bool)
	delayNaks bool // short delays of naks are waited for here; not in a simulation, which has its own time
	js        jetstream.JetStream
	o         Options
	inbox     string
	nextMsg   string // API subject of a pull
	fatal     chan error
	presence  *presence.Watch // of the consumer
	verify    chan struct{}   // a status reports that the consumer is gone
	beatNow   chan struct{}   // the ack wait was lowered: heartbeats are due
	ackWaits  [2]atomic.Int64 // the last two that were read, in nanoseconds

	lastHeard atomic.Int64 // when the server sent something last, by now, in nanoseconds
	draining  atomic.Bool  // set under mu
	cut       atomic.Bool  // the connection was lost, and the server has answered no ping since
	arrived   arrivals
	lines     throttle.Lines // about messages that are not deliveries of the consumer

	mu           sync.Mutex
	sub          *nats.Subscription
	held         map[uint64]*Delivery
	queue        queue                     // of the held, those that no handler has begun; may contain some that are not held any more
	busy         int                       // handlers that take a slot: not returned, and not released
	released     int                       // of the held, those that take no slot
	delayed      map[*Delivery]*time.Timer // of the held, those whose nak is sent later
	outstanding  pulls
	handlingTime handlingTime

	handlers sync.WaitGroup
	handling context.Context //nolint:containedctx // of all handlers, made by Run
}

// New returns an inbox on a connection. It does nothing before Run.
func New(nc *nats.Conn, o Options) (*Inbox, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	epoch := time.Now()
	in := newInbox(nc, nc.Opts.InboxPrefix, func() time.Duration { return time.Since(epoch) }, o)
	in.nc, in.js, in.delayNaks = nc, js, true
	return in, nil
}

func newInbox(link Link, prefix string, now func() time.Duration, o Options) *Inbox {
	if o.SoftStop <= 0 {
		o.SoftStop = 25 * time.Second
	}
	if o.HardStop <= 0 {
		o.HardStop = 15 * time.Second
	}
	if o.Reread <= 0 {
		o.Reread = reread
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	in := &Inbox{
		link: link, now: now, o: o, inbox: subjects.NewInbox(prefix),
		nextMsg:      "$JS.API.CONSUMER.MSG.NEXT." + o.Stream + "." + o.Consumer,
		queue:        queue{ring: make([]*Delivery, 4*o.Slots+64)},
		fatal:        make(chan error, 1),
		presence:     presence.New("inbox: consumer "+o.Consumer+" of stream "+o.Stream, ErrGone),
		verify:       make(chan struct{}, 1),
		beatNow:      make(chan struct{}, 1),
		held:         map[uint64]*Delivery{},
		delayed:      map[*Delivery]*time.Timer{},
		handlingTime: newHandlingTime(),
	}
	in.unread = in.pending
	in.ackWaits[0].Store(int64(o.AckWait))
	in.ackWaits[1].Store(int64(o.AckWait))
	return in
}

// Run handles messages until ctx ends, then drains: it stops pulling, naks what no handler has
// begun, waits SoftStop, ends the handlers' context with stopCause and waits HardStop. It
// returns an error only for permanent failures: [ErrGone], [ErrClosed].
func (in *Inbox) Run(ctx context.Context, stopCause error) error {
	if err := in.begin(ctx); err != nil {
		return err
	}
	handling, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	in.handling = handling
	in.start = in.spawn
	sub, err := in.nc.Subscribe(in.inbox, func(m *nats.Msg) { in.receive(m) })
	if err != nil {
		return fmt.Errorf("inbox: subscribe: %w", err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // bounded by what was pulled
		return fmt.Errorf("inbox: %w", err)
	}
	status := in.nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED, nats.CLOSED)
	defer in.nc.RemoveStatusListener(status)
	in.mu.Lock()
	in.sub = sub
	in.mu.Unlock()

	ended := make(chan struct{})
	var loops sync.WaitGroup
	loops.Go(func() { in.keepPulling(ended, status) })
	loops.Go(func() { in.beats(ended) })
	loops.Go(func() { in.every(checksAWait, ended, in.expireLeases) })
	loops.Go(func() { in.every(probesAWait, ended, in.probe) })

	in.probe()
	in.lastHeard.Store(int64(in.now()))
	in.pull(true)
	select {
	case <-ctx.Done():
		err = nil
	case err = <-in.fatal:
	}
	in.drain(sub, func() { stop(stopCause) })
	close(ended)
	loops.Wait()
	if errFlush := in.nc.FlushTimeout(2 * time.Second); errFlush != nil {
		in.o.Logger.Debug("the last acknowledgements may be lost; those messages will be redelivered", "err", errFlush)
	}
	return err
}

// Held returns how many messages are held: buffered and being handled.
func (in *Inbox) Held() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.held)
}

// Ready reports why the inbox does not consume, or nil when it does: the connection is up and
// the server has answered its pulls recently.
func (in *Inbox) Ready() error {
	in.mu.Lock()
	running, pulled := in.sub != nil, in.outstanding.total() > 0
	in.mu.Unlock()
	switch silent := in.now() - time.Duration(in.lastHeard.Load()); {
	case in.draining.Load():
		return ErrDraining
	case !running:
		return errors.New("not consuming")
	case !in.nc.IsConnected():
		return errors.New("not connected to NATS")
	case pulled && silent > 3*heartbeat: // while every slot is taken nothing is pulled, and the server is silent
		return fmt.Errorf("no response from %s/%s for %s", in.o.Stream, in.o.Consumer, silent.Round(time.Second))
	}
	return nil
}

// closed is [ErrClosed] with the reason of the client: it closes a connection for example when the server
// has refused its credentials twice.
func (in *Inbox) closed() error {
	if err := in.nc.LastError(); err != nil {
		return fmt.Errorf("inbox: %w: %w: renew its credentials and start the worker again", ErrClosed, err)
	}
	return fmt.Errorf("inbox: %w", ErrClosed)
}

func (in *Inbox) fail(err error) {
	select {
	case in.fatal <- err:
	default:
	}
}

// begin checks the consumer until it is found, or certainly gone.
func (in *Inbox) begin(ctx context.Context) error {
	for {
		err := in.check(ctx)
		if err != nil || !in.presence.MaybeGone() {
			return err
		}
		if pause.For(ctx, presence.Again) != nil {
			return nil //nolint:nilerr // Run drains
		}
	}
}

// check reads the configuration of the consumer. Its error is [ErrGone], after two checks that have not
// found it.
func (in *Inbox) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	consumer, err := in.js.Consumer(ctx, in.o.Stream, in.o.Consumer)
	switch {
	case err == nil:
		in.setConfig(consumer.CachedInfo().Config)
		return in.presence.Found(time.Time{}, "") // one that was created again has the same messages
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrNotPullConsumer):
		return in.presence.Missing("run `turnctl provision`")
	}
	return nil // unreachable is not gone
}
