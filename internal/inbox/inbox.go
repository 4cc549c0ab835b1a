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

	"github.com/oneturn/oneturn/internal/presence"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// Options of an [Inbox]. Stream, Consumer, Handle and Slots are required.
type Options struct {
	Stream   string
	Consumer string // durable pull consumer with explicit acknowledgement
	Slots    int    // how many messages are handled at the same time, without those whose slot is released ([Delivery.Release])
	// Handle deals with a message and settles it. ctx ends, with the cause given to Run's
	// stop, when the handler has to come to an end.
	Handle func(ctx context.Context, d *Delivery)
	// AckWait is that of the consumer when the inbox begins. It is read again every Reread, which
	// defaults to a minute, and heartbeats follow the smaller one of the last two values.
	AckWait, Reread time.Duration
	// OnConfig, if not nil, is called with the consumer's configuration whenever it has been read.
	OnConfig func(jetstream.ConsumerConfig)
	// SoftStop is how long a drain waits for handlers before it ends their context, HardStop
	// how long after that it still waits. Default to 25 s and 15 s.
	SoftStop, HardStop time.Duration
	Logger             *slog.Logger // defaults to discarding
}

// ErrGone says that the stream or consumer does not exist (any more). A worker never makes
// it anew: an empty queue or journal would run old turns again.
var ErrGone = presence.ErrGone

// ErrDraining is why an inbox that stops is not ready.
var ErrDraining = errors.New("draining: it takes no new messages and stops when its tools have ended")

// ErrClosed says that the NATS connection was closed for good.
var ErrClosed = errors.New("the NATS connection is closed")

// Inbox pulls messages and has them handled.
type Inbox struct {
	nc    *nats.Conn
	link  Link                 // to the server; nc, but for a simulation
	now   func() time.Duration // since an instant
	spawn func()               // begins a handler more
	// unread is how much lies in the buffers of the connection, and whether anything is received; pending, but for
	// a simulation
	unread func() (int, bool)
	rests  bool // messages that are given back for a short time rest here: not in a simulation, which has its own time
	js     jetstream.JetStream
	o      Options
	inbox  string
	next   string // API subject of a pull
	queue  chan *Delivery
	spare  chan struct{} // tokens of handlers that are one too many
	fatal  chan error
	there  *presence.Watch // the consumer
	doubt  chan struct{}   // a status claims that the consumer is gone
	hurry  chan struct{}   // the ack wait was lowered: heartbeats are due
	waits  [2]atomic.Int64 // the last two ack waits that were read, in nanoseconds

	word     atomic.Int64 // last word from the server, nanoseconds since epoch
	draining atomic.Bool
	cut      atomic.Bool // the connection was lost, and the server has answered no ping since
	arrived  arrivals
	lines    throttle.Lines // of what no consumer has delivered

	mu          sync.Mutex
	sub         *nats.Subscription
	held        map[uint64]*Delivery
	resting     map[*Delivery]*time.Timer // of the held, those that are given back when their time comes
	away        int                       // of the held, those that take no slot
	outstanding pulls
	pace        pace

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
	in.nc, in.js, in.rests = nc, js, true
	in.spawn = func() { in.handlers.Go(in.work) }
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
		link: link, now: now, spawn: func() {}, o: o, inbox: subjects.NewInbox(prefix),
		next:  "$JS.API.CONSUMER.MSG.NEXT." + o.Stream + "." + o.Consumer,
		queue: make(chan *Delivery, 4*o.Slots+64),
		spare: make(chan struct{}, maxAway),
		fatal: make(chan error, 1),
		there: presence.New("inbox: consumer "+o.Consumer+" of stream "+o.Stream, ErrGone),
		doubt: make(chan struct{}, 1),
		hurry: make(chan struct{}, 1),
		held:  map[uint64]*Delivery{}, resting: map[*Delivery]*time.Timer{},
		pace: newPace(),
	}
	in.unread = in.pending
	in.waits[0].Store(int64(o.AckWait))
	in.waits[1].Store(int64(o.AckWait))
	return in
}

// Run handles messages until ctx ends, then drains: it stops pulling, gives back what no
// handler has begun, waits SoftStop, ends the handlers' context with stopCause and waits
// HardStop. It returns an error only for what cannot heal: [ErrGone], [ErrClosed].
func (in *Inbox) Run(ctx context.Context, stopCause error) error {
	if err := in.begin(ctx); err != nil {
		return err
	}
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

	handling, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	in.handling = handling
	for range in.o.Slots {
		in.handlers.Go(in.work)
	}
	tending := make(chan struct{})
	var tender sync.WaitGroup
	tender.Go(func() { in.tend(tending, status) })
	tender.Go(func() { in.beats(tending) })
	tender.Go(func() { in.lapses(tending) })
	tender.Go(func() { in.probes(tending) })

	in.probe()
	in.word.Store(int64(in.now()))
	in.pull(true)
	select {
	case <-ctx.Done():
		err = nil
	case err = <-in.fatal:
	}
	in.drain(sub, func() { stop(stopCause) })
	close(tending)
	tender.Wait()
	if errFlush := in.nc.FlushTimeout(2 * time.Second); errFlush != nil {
		in.o.Logger.Debug("the last acknowledgements may be lost; those messages come back", "err", errFlush)
	}
	return err
}

// drain stops pulling, gives back what no handler has begun, and waits for the handlers.
func (in *Inbox) drain(sub *nats.Subscription, stop func()) {
	in.giveBack()
	in.restless()
	// Draining, not dropping: what has arrived by now is still received, and given back.
	drained := sub.StatusChanged(nats.SubscriptionClosed)
	if err := sub.Drain(); err == nil {
		select {
		case <-drained:
		case <-time.After(time.Second): // a lost connection never confirms
		}
	}
	in.mu.Lock()
	in.sub = nil
	close(in.queue)
	in.mu.Unlock()
	done := make(chan struct{})
	go func() {
		in.handlers.Wait()
		close(done)
	}()
	for _, wait := range []time.Duration{in.o.SoftStop, in.o.HardStop} {
		t := time.NewTimer(wait)
		select {
		case <-done:
			t.Stop()
			return
		case <-t.C:
			stop()
		}
	}
	in.o.Logger.Warn("handlers still run after the drain; their messages come back", "held", in.Held())
	in.letGo()
	select {
	case <-done:
	case <-time.After(time.Second): // it was told; a tool may be deaf
	}
}

// giveBack gives all that no handler has begun back at once, whether or not a slot is free: another
// worker may be. It does so with what comes after it, too.
func (in *Inbox) giveBack() {
	in.mu.Lock()
	in.draining.Store(true) // receive buffers nothing after this
	in.mu.Unlock()
	for {
		select {
		case d := <-in.queue:
			d.Nak(0)
		default:
			return
		}
	}
}

// letGo ends every lease: no more heartbeats are sent, so that writes of unknown outcome
// have to end too.
func (in *Inbox) letGo() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range in.held {
		d.cancel(ErrLeaseLost)
	}
}

// Held returns how many messages are held: buffered and being handled.
func (in *Inbox) Held() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.held)
}

// Ready reports why the inbox does not consume, or nil when it does: the connection is up and
// the server has answered its pulls lately.
func (in *Inbox) Ready() error {
	in.mu.Lock()
	running, pulled := in.sub != nil, in.outstanding.total() > 0
	in.mu.Unlock()
	switch silent := in.now() - time.Duration(in.word.Load()); {
	case in.draining.Load():
		return ErrDraining
	case !running:
		return errors.New("not consuming")
	case !in.nc.IsConnected():
		return errors.New("not connected to NATS")
	case pulled && silent > 3*heartbeat: // with every slot taken nothing is pulled, nor said
		return fmt.Errorf("no word from %s/%s for %s", in.o.Stream, in.o.Consumer, silent.Round(time.Second))
	}
	return nil
}

// closed is [ErrClosed] with what the client says of it: credentials that the server refuses
// twice, for one, are the end of a connection.
func (in *Inbox) closed() error {
	if err := in.nc.LastError(); err != nil {
		return fmt.Errorf("inbox: %w: %w: renew what it signs in with and start the worker again", ErrClosed, err)
	}
	return fmt.Errorf("inbox: %w", ErrClosed)
}

func (in *Inbox) fail(err error) {
	select {
	case in.fatal <- err:
	default:
	}
}

// begin checks the consumer until it is found, or known to be gone.
func (in *Inbox) begin(ctx context.Context) error {
	for {
		err := in.check(ctx)
		if err != nil || !in.there.Suspect() {
			return err
		}
		select {
		case <-time.After(presence.Again):
		case <-ctx.Done():
			return nil // Run drains
		}
	}
}

// check asks whether the consumer exists, and for its configuration. Its error is [ErrGone], after two looks that have not
// found it.
func (in *Inbox) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	consumer, err := in.js.Consumer(ctx, in.o.Stream, in.o.Consumer)
	switch {
	case err == nil:
		in.learn(consumer.CachedInfo().Config)
		return in.there.Found(time.Time{}, "") // one that was created again has the same messages
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrNotPullConsumer):
		return in.there.Missing("run `turnctl provision`")
	}
	return nil // unreachable is not gone
}
