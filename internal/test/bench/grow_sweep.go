package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Measurements of sweeps over ever more open turns: how long until each was read and until the one without a message is
// resumed, what the sweep stores, and what it delays. The publisher's process stores the open turns.

// sweepProbeRate is how many records a second are stored during a sweep to see how long they take.
const sweepProbeRate = 200

// openTurn is the id of an open turn. No published turn has them.
func openTurn(i int) events.TurnID {
	return events.TurnID{App: app, Chat: "open-" + strconv.Itoa(i/turnsAChat), Turn: "open-" + strconv.Itoa(i)}
}

// heldOneIn of the open turns is held by a message, the others are parked: of the former there are no more
// than the pools of a server hold messages.
const heldOneIn = 50

// leave stores open turns as workers leave them. Of is how many messages of the inbound stream hold those
// that are not parked; 0: none is parked, and their messages are gone.
func (p *publisher) leave(ctx context.Context, r request) error {
	return p.store(ctx, r.Count, func(ctx context.Context, store idempotency.Store, i int) error {
		return p.leaveOne(ctx, store, r.From+i, r.Of)
	})
}

func (p *publisher) leaveOne(ctx context.Context, store idempotency.Store, i, messages int) error {
	id := openTurn(i)
	call, _, err := p.payload.outboundOf(id, time.Now())
	if err != nil {
		return err
	}
	key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
	meta := idempotency.Meta{
		Owner: "bench-worker-0", Nonce: idempotency.NewNonce(), Epoch: 1, Fingerprint: fmt.Sprintf("%064x", i),
		Lease:  idempotency.Lease{Stream: p.space.InStream(), Seq: 1 << 40, Delivery: 1},
		Effect: "replay", Digest: fmt.Sprintf("%064x", 1),
	}
	if messages > 0 {
		meta.Lease.Seq = uint64(i%messages) + 1
	}
	records := []idempotency.Record{{Key: key.Public(events.KindToolCall), Meta: meta, Data: call}}
	if messages > 0 && i%heldOneIn > 0 {
		meta.Lease, meta.Fingerprint, meta.Digest, meta.Effect = idempotency.Lease{}, "", "", ""
		ask := idempotency.Record{Key: key.Public("ask", "1"), Meta: meta, Data: call}
		meta.Outcome = "parked"
		park := idempotency.Record{Key: key.Private("park", "1"), Meta: meta, Data: json.RawMessage(`{"open":["1"]}`)}
		records = append(records, ask, park)
	}
	for _, record := range records {
		if _, err := store.Create(ctx, record); err != nil {
			return fmt.Errorf("leave turn %d open: %w", i, err)
		}
	}
	return nil
}

// sweeps measures sweeps of a journal with ever more open turns, with one after them whose message is gone.
func (g *growth) sweeps(ctx context.Context) error {
	return g.with(ctx, spec{Payload: "flat", InFlight: headline}, func(l *lab) error {
		for range heldBy {
			if _, err := l.js.Publish(ctx, l.ids.In("idle", events.KindStructuredOutputReady, app, workflow, "chat"), []byte("{}")); err != nil {
				return fmt.Errorf("publish what holds turns: %w", err)
			}
		}
		open := 0
		for _, n := range g.openTurns {
			if err := g.leave(ctx, l, open, n-open); err != nil {
				return err
			}
			open = n
			if err := g.sweepOf(ctx, l, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// heldBy is how many messages hold the open turns.
const heldBy = 1000

func (g *growth) leave(ctx context.Context, l *lab, from, count int) error {
	const step = 100_000
	start := time.Now()
	for n := 0; n < count; n += step {
		if _, err := l.publisher.do(ctx, request{Do: "leave", From: from + n, Count: min(step, count-n), Of: heldBy}); err != nil {
			return err
		}
	}
	// One after them whose message is gone.
	if _, err := l.publisher.do(ctx, request{Do: "leave", From: 100_000_000 + from, Count: 1}); err != nil {
		return err
	}
	g.sayf("%d turns open (%.0f/s)", from+count, float64(count)/time.Since(start).Seconds())
	return nil
}

// sweepRound are the sweeps until each turn was looked at.
type sweepRound struct {
	swept

	sweeps int
	usage  usage
	writes []float64 // what records took to be stored meanwhile, in ms, sorted
}

func (g *growth) sweepRound(ctx context.Context, l *lab, sweeper role) (sweepRound, error) {
	var r sweepRound
	stop := l.storing(ctx)
	for {
		answer, err := sweeper.do(ctx, request{Do: "sweep"})
		if err != nil {
			return r, err
		}
		s := answer.Swept
		r.sweeps++
		r.Took, r.Requests, r.Headers, r.Checked = r.Took+s.Took, r.Requests+s.Requests, r.Headers+s.Headers, r.Checked+s.Checked
		r.Resumed, r.Failed, r.Open, r.usage = r.Resumed+s.Resumed, r.Failed+s.Failed, s.Open, answer.Usage
		g.sayf("sweep: %+v, RSS %d MiB, greatest %d MiB", *s, r.usage.RSS/mib, r.usage.Peak/mib)
		if r.Failed > 0 {
			return r, fmt.Errorf("%d turns could not be swept", r.Failed)
		}
		if r.Checked >= r.Open {
			r.writes, err = stop()
			return r, err
		}
	}
}

func (g *growth) sweepOf(ctx context.Context, l *lab, open int) error {
	stop := l.storing(ctx)
	if err := await(ctx, time.Now().Add(g.paced/3)); err != nil {
		return err
	}
	calm, err := stop()
	if err != nil {
		return err
	}
	s := l.base
	s.SweepRate = g.sweepRate
	if _, err := l.start(ctx, &l.sweeper, s, "sweeper", nil); err != nil {
		return err
	}
	first, err := g.sweepRound(ctx, l, l.sweeper)
	if err != nil {
		return err
	}
	again, err := g.sweepRound(ctx, l, l.sweeper)
	if err != nil {
		return err
	}
	state, err := l.sweepState(ctx)
	if err != nil {
		return err
	}
	server, err := l.server.do(ctx, request{Do: "usage"})
	if err != nil {
		return err
	}
	on := strconv.Itoa(open) + " open turns"
	for _, x := range []struct {
		name string
		of   sweepRound
	}{{"first", first}, {"nothing new", again}} {
		on := on + ", " + x.name
		g.add(
			growthRow{Measurement: measureSweep, Figure: "until all are looked at", Unit: "s", Load: on, Value: x.of.Took.Seconds()},
			growthRow{Measurement: measureSweep, Figure: "sweeps for that", Load: on, Value: float64(x.of.sweeps)},
			growthRow{Measurement: measureSweep, Figure: "headers read", Load: on, Value: float64(x.of.Headers)},
			growthRow{Measurement: measureSweep, Figure: "requests a turn", Load: on, Value: float64(x.of.Requests) / float64(open)},
			growthRow{Measurement: measureSweep, Figure: "greatest RSS", Unit: "MiB", Load: on, Value: float64(x.of.usage.Peak) / mib},
			growthRow{Measurement: measureSweep, Figure: "record stored meanwhile, p99", Unit: "ms", Load: on, Value: quantile(x.of.writes, 0.99)}.
				comparedWith("none", quantile(calm, 0.99)),
			growthRow{Measurement: measureSweep, Figure: "record stored meanwhile, most", Unit: "ms", Load: on, Value: x.of.writes[len(x.of.writes)-1]}.
				comparedWith("none", calm[len(calm)-1]),
		)
	}
	resumes := first.Resumed + again.Resumed
	g.add(
		growthRow{Measurement: measureSweep, Figure: "state of the sweeps", Unit: "MiB", Load: on, Value: float64(state) / mib},
		growthRow{Measurement: measureSweep, Figure: "server, RSS", Unit: "MiB", Load: on, Value: float64(server.Usage.RSS) / mib},
		growthRow{Measurement: measureSweep, Figure: "resumes of the turn after them", Load: on, Value: float64(resumes)}.aim("1", resumes == 1),
	)
	return l.stop(l.sweeper)
}

// sweepState is how many bytes the bucket has that holds the state of the sweeps.
func (l *lab) sweepState(ctx context.Context) (uint64, error) {
	stream, err := l.js.Stream(ctx, "KV_"+l.ids.ContextBucket())
	if err != nil {
		return 0, fmt.Errorf("find the state of the sweeps: %w", err)
	}
	return stream.CachedInfo().State.Bytes, nil
}

// storing stores records of ended turns until the function that it returns is called, which returns
// what each took, in ms, sorted.
func (l *lab) storing(ctx context.Context) func() ([]float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		took []float64
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		wait := steady(ctx, sweepProbeRate)
		for n := 0; r.err == nil && wait(n) == nil; n++ {
			id := events.TurnID{App: app, Chat: "meanwhile", Turn: strconv.FormatInt(time.Now().UnixNano(), 36)}
			subject := l.ids.JournalSubject(subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn).Public(events.KindToolResponse))
			start := time.Now()
			_, r.err = l.js.Publish(context.WithoutCancel(ctx), subject, []byte("{}"))
			r.took = append(r.took, time.Since(start).Seconds()*1000)
		}
		done <- r
	}()
	return func() ([]float64, error) {
		cancel()
		r := <-done
		slices.Sort(r.took)
		return r.took, r.err
	}
}
