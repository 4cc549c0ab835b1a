package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// A lab is what one measurement runs on: a server, a worker and a publisher, in this process or in others (topologies),
// provisioned as a user would. It starts them, counts what the journal has stored to see when the turns have ended, and
// reads the records back.

// Where server, worker and publisher run.
const (
	embeddedTopology  = "embedded"  // all in this process; the worker connects as transport specifies
	processesTopology = "processes" // each in a separate process, over loopback TCP
)

// Transports of the worker in the embedded topology.
const (
	overTCP   = "tcp"
	inProcess = "inprocess"
)

// lab is a fresh server, worker and publisher for one measurement.
type lab struct {
	point point
	base  spec   // what the specs of all roles have in common
	roles []role // in the order they were started
	dir   string
	ids   subjects.Space
	plan  provision.Plan

	server, worker, publisher, sweeper role
	nc                                 *nats.Conn
	js                                 jetstream.JetStream
	journal, inbound                   jetstream.Stream
	stored                             uint64 // records of turns so far
	waiting                            uint64 // inbound messages of turns that wait in a worker's memory
	published, retained                int    // turns so far, of growth
}

// open starts everything and provisions the server as a user would.
func open(ctx context.Context, o options, p point, arm string) (_ *lab, err error) {
	l, err := openServer(ctx, o.store, p, spec{Arm: arm, Payload: p.Payload, InFlight: p.InFlight})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	base, worker := l.base, l.base
	worker.CPUProfile, worker.MemProfile = o.cpuProfile, o.memProfile
	dial := dialTCP(base.URL)
	if s, ok := l.server.(*server); ok && o.transport == inProcess {
		dial = func() (*nats.Conn, error) { return s.Conn(connection()...) }
	}
	if _, err := l.start(ctx, &l.worker, worker, "worker", dial); err != nil {
		return l, err
	}
	_, err = l.start(ctx, &l.publisher, base, "publisher", dialTCP(base.URL))
	return l, err
}

// openServer starts and provisions the server only. A separate directory is made in store.
func openServer(ctx context.Context, store string, p point, base spec) (_ *lab, err error) {
	l := &lab{point: p, base: base}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.dir, err = os.MkdirTemp(store, "oneturn-bench-"); err != nil {
		return nil, fmt.Errorf("make the store: %w", err)
	}
	l.base.Store = l.dir
	hello, err := l.start(ctx, &l.server, l.base, "server", nil)
	if err != nil {
		return nil, err
	}
	l.base.URL = hello.URL
	return l, l.provision(ctx, hello.URL)
}

func (l *lab) start(ctx context.Context, to *role, s spec, name string, dial dialer) (reply, error) {
	s.Role = name
	run := func() (role, reply, error) { return start(ctx, s, dial) }
	if l.point.Topology == processesTopology {
		run = func() (role, reply, error) { return spawn(ctx, s) }
	}
	r, hello, err := run()
	if err != nil {
		return reply{}, fmt.Errorf("start the %s: %w", name, err)
	}
	*to = r
	l.roles = append(l.roles, r)
	return hello, nil
}

func (l *lab) provision(ctx context.Context, url string) error {
	var err error
	if l.ids, err = subjects.New(subjects.DefaultPrefix); err != nil {
		return err
	}
	if l.plan, err = provision.New(provision.Options{Space: l.ids}); err != nil {
		return err
	}
	if err := l.connect(url); err != nil {
		return err
	}
	if _, err = provision.Apply(ctx, l.js, l.plan); err != nil {
		return err
	}
	return l.find(ctx)
}

// connect connects the lab itself.
func (l *lab) connect(url string, options ...nats.Option) error {
	var err error
	if l.nc, err = nats.Connect(url, options...); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if l.js, err = jetstream.New(l.nc); err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	return nil
}

// find looks up the streams that the lab watches.
func (l *lab) find(ctx context.Context) error {
	var err error
	if l.journal, err = l.js.Stream(ctx, l.ids.TurnsStream()); err != nil {
		return fmt.Errorf("find the journal: %w", err)
	}
	if l.inbound, err = l.js.Stream(ctx, l.ids.InStream()); err != nil {
		return fmt.Errorf("find the inbound stream: %w", err)
	}
	return nil
}

func (l *lab) close() error {
	var errs []error
	if l.nc != nil {
		l.nc.Close()
	}
	for _, r := range slices.Backward(l.roles) { // the server last
		errs = append(errs, r.close())
	}
	if l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	return errors.Join(errs...)
}

// warm starts the worker and has it run turns that are not measured.
func (l *lab) warm(ctx context.Context, turns int) error {
	if _, err := l.worker.do(ctx, request{Do: "run"}); err != nil {
		return err
	}
	if _, err := l.publisher.do(ctx, request{Do: "fill", Count: turns}); err != nil {
		return err
	}
	return l.await(ctx, turns)
}

// pollEvery is how often the lab looks whether the turns have ended: one request, so that
// looking costs the measured processes next to nothing.
const pollEvery = 20 * time.Millisecond

// stuckAfter is how long nothing may be stored while the lab waits for records: longer than any redelivery takes.
const stuckAfter = 90 * time.Second

// await waits until that many more turns have their call and response in the journal and
// nothing is left inbound.
func (l *lab) await(ctx context.Context, turns int) error { return l.awaitRecords(ctx, 2*turns) }

// awaitRecords waits for that many more records of whatever kind. What is left inbound then are
// the turns that wait in memory.
func (l *lab) awaitRecords(ctx context.Context, records int) error {
	l.stored += uint64(records)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last uint64
	moved := time.Now()
	for {
		journal, err := l.journal.Info(ctx)
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		if journal.State.Msgs != last {
			last, moved = journal.State.Msgs, time.Now()
		}
		if journal.State.Msgs >= l.stored || time.Since(moved) > stuckAfter {
			inbound, err := l.inbound.Info(ctx)
			if err != nil {
				return fmt.Errorf("read the inbound stream: %w", err)
			}
			switch {
			case time.Since(moved) > stuckAfter:
				return fmt.Errorf("nothing was stored for %s: %d of %d records, %d of %d messages left inbound",
					stuckAfter, journal.State.Msgs, l.stored, inbound.State.Msgs, l.waiting)
			case inbound.State.Msgs == l.waiting:
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d records stored: %w", journal.State.Msgs, l.stored, ctx.Err())
		}
	}
}

// settle waits until all that is published has come to an end and nothing has been stored for a
// while. How many records that makes may depend on who was faster.
func (l *lab) settle(ctx context.Context) error {
	var last uint64
	moved := time.Now()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		journal, err := l.journal.Info(ctx)
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		inbound, err := l.inbound.Info(ctx)
		if err != nil {
			return fmt.Errorf("read the inbound stream: %w", err)
		}
		if journal.State.Msgs != last || inbound.State.Msgs != l.waiting {
			last, moved = journal.State.Msgs, time.Now()
		}
		if time.Since(moved) > quietFor {
			l.stored = last
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d messages left inbound: %w", inbound.State.Msgs, ctx.Err())
		}
	}
}

// quietFor is how long nothing is stored once all is done.
const quietFor = time.Second

// spread returns the time from the first to the last record of the turns after a sequence of
// the journal, by the server's clock.
func (l *lab) spread(ctx context.Context, after uint64) (time.Duration, error) {
	first, err := l.journal.GetMsg(ctx, after+1)
	if err != nil {
		return 0, fmt.Errorf("read the first record: %w", err)
	}
	last, err := l.journal.GetMsg(ctx, l.stored)
	if err != nil {
		return 0, fmt.Errorf("read the last record: %w", err)
	}
	return last.Time.Sub(first.Time), nil
}

// stamp is when a record was stored, by the server's clock, and by which worker.
type stamp struct {
	at    time.Time
	owner string // "" of the baselines
}

// responses returns the stamp of the response of each turn from an index on, which are among
// the records from a sequence of the journal on. It fails if one is missing or was not a success.
func (l *lab) responses(ctx context.Context, from, count int, start uint64) ([]stamp, error) {
	return l.stamps(ctx, events.KindToolResponse, series(from, count), start, succeeded)
}

// series are turns one after the other.
func series(from, count int) []int {
	turns := make([]int, count)
	for n := range turns {
		turns[n] = from + n
	}
	return turns
}

// stamps returns the stamps of records of one kind, one of each turn. It fails if one is
// missing or does not pass the check, which gets the place of the turn among those given.
func (l *lab) stamps(ctx context.Context, kind string, turns []int, start uint64, check func(n int, event []byte) error) ([]stamp, error) {
	count := len(turns)
	index := make(map[string]int, count)
	for n, turn := range turns {
		index[l.ids.JournalSubject(turnKey(turn).Public(kind))] = n
	}
	consumer, err := l.journal.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{l.ids.JournalSubject("e.*.*.*.*." + kind)},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: start,
	})
	if err != nil {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	batch, err := consumer.Fetch(count, jetstream.FetchMaxWait(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	out := make([]stamp, count)
	found := 0
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return nil, fmt.Errorf("read the records: %w", err)
		}
		n, known := index[m.Subject()]
		if !known || !out[n].at.IsZero() {
			return nil, fmt.Errorf("unexpected record %s", m.Subject())
		}
		if err := check(n, m.Data()); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Subject(), err)
		}
		out[n] = stamp{meta.Timestamp, m.Headers().Get(idempotency.HeaderOwner)}
		found++
	}
	if err := batch.Error(); err != nil {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	if found != count {
		return nil, fmt.Errorf("%d of %d records %s found", found, count, kind)
	}
	return out, nil
}

// succeeded checks a response against what the no-op tool returns: a measurement of refused
// turns would look fast.
func succeeded(_ int, event []byte) error {
	_, err := payloadOf(event)
	return err
}

// payloadOf returns the payload of a response that is a success.
func payloadOf(event []byte) (any, error) {
	r, err := events.ReadResponse(event)
	if err != nil {
		return nil, err
	}
	if !r.Success {
		return nil, fmt.Errorf("the turn did not succeed: %s: %s", r.Code, r.Content)
	}
	return r.Payload, nil
}
