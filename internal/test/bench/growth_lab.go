package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
)

// What the measurements of growth do with a lab (lab.go) beyond the table of all figures: start more workers, publish
// at a fixed rate, time how a backlog drains, and restart the server.

// startWorker starts one more worker and returns it, with the time from the start of its
// process until it consumes.
func (l *lab) startWorker(ctx context.Context, arm string) (role, time.Duration, error) {
	s := l.base
	s.Arm = arm
	begin := time.Now()
	if _, err := l.start(ctx, &l.worker, s, "worker", nil); err != nil {
		return nil, 0, err
	}
	if _, err := l.worker.do(ctx, request{Do: "run"}); err != nil {
		return nil, 0, err
	}
	return l.worker, time.Since(begin), nil
}

// stop ends a role before the lab ends.
func (l *lab) stop(r role) error {
	l.roles = slices.DeleteFunc(l.roles, func(o role) bool { return o == r })
	return r.close()
}

// publish publishes the next turns and, if a worker runs, waits until they have ended.
func (l *lab) publish(ctx context.Context, turns int, await bool) error {
	if _, err := l.publisher.do(ctx, request{Do: "fill", From: l.published, Count: turns}); err != nil {
		return err
	}
	l.published += turns
	if !await {
		return nil
	}
	return l.await(ctx, turns)
}

// waits are how long turns took from the moment they were published, in ms, sorted.
type waits struct {
	claims []float64 // until the claim was stored, by the server's clock
	ends   []float64 // until the response was stored
}

// sort sorts what was gathered.
func (w *waits) sort() {
	slices.Sort(w.claims)
	slices.Sort(w.ends)
}

// pace publishes the next turns at a fixed rate and returns what they had to wait.
func (l *lab) pace(ctx context.Context, rate int, d time.Duration) (waits, error) {
	turns, from := max(int(float64(rate)*d.Seconds()), 1), l.published
	start, err := l.lastRecord(ctx)
	if err != nil {
		return waits{}, err
	}
	answer, err := l.publisher.do(ctx, request{Do: "pace", From: from, Count: turns, Rate: rate})
	if err != nil {
		return waits{}, err
	}
	l.published += turns
	if err := l.await(ctx, turns); err != nil {
		return waits{}, err
	}
	var w waits
	for _, x := range []struct {
		kind  string
		check func(int, []byte) error
		to    *[]float64
	}{
		{events.KindToolCall, func(int, []byte) error { return nil }, &w.claims},
		{events.KindToolResponse, succeeded, &w.ends},
	} {
		stamps, err := l.stamps(ctx, x.kind, series(from, turns), start+1, x.check)
		if err != nil {
			return waits{}, err
		}
		for n, s := range stamps {
			*x.to = append(*x.to, s.at.Sub(time.Unix(0, answer.Sent[n])).Seconds()*1000)
		}
	}
	w.sort()
	return w, nil
}

// drained is what working off some turns gave.
type drained struct {
	rate   float64        // turns a second
	owners map[string]int // turns of each worker
}

// drain has workers work off the last turns that are published; work publishes them, or
// starts the workers. The rate is that after the first turns.
func (l *lab) drain(ctx context.Context, warm, turns int, work func() error) (drained, error) {
	start, err := l.lastRecord(ctx)
	if err != nil {
		return drained{}, err
	}
	if err := work(); err != nil {
		return drained{}, err
	}
	from := l.published - warm - turns
	if err := l.await(ctx, warm+turns); err != nil {
		return drained{}, err
	}
	stamps, err := l.responses(ctx, from, warm+turns, start+1)
	if err != nil {
		return drained{}, err
	}
	slices.SortFunc(stamps, func(a, b stamp) int { return a.at.Compare(b.at) })
	d := drained{owners: map[string]int{}}
	d.rate = float64(turns) / stamps[len(stamps)-1].at.Sub(stamps[warm-1].at).Seconds()
	for _, s := range stamps[warm:] {
		d.owners[s.owner]++
	}
	return d, nil
}

func (l *lab) lastRecord(ctx context.Context) (uint64, error) {
	info, err := l.journal.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the journal: %w", err)
	}
	return info.State.LastSeq, nil
}

// restart ends all that runs, the server by a stop or as a crash does, and starts server and
// publisher again. It returns how long the server took.
func (l *lab) restart(ctx context.Context, crash bool) (time.Duration, error) {
	l.nc.Close()
	var errs []error
	for _, r := range slices.Backward(l.roles) {
		server, ok := r.(*remote)
		if ok && r == l.server && crash {
			errs = append(errs, server.kill())
		} else {
			errs = append(errs, r.close())
		}
	}
	l.roles = nil
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	begin := time.Now()
	if _, err := l.start(ctx, &l.server, l.base, "server", nil); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if err := l.connect(l.base.URL, nats.MaxReconnects(-1)); err != nil {
		return 0, err
	}
	if err := l.find(ctx); err != nil {
		return 0, err
	}
	_, err := l.start(ctx, &l.publisher, l.base, "publisher", nil)
	return took, err
}
