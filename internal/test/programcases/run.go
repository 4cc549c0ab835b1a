package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Bounds of a case, on a busy machine.
const (
	limit    = 40 * time.Second // until the turn has ended
	drainFor = 5 * time.Second  // until all its messages are acknowledged
)

// run runs a case in folder and returns what was seen, with what went wrong on the way.
func (c *Case) run(ctx context.Context, folder string) (o *Observed, problems []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+drainFor+20*time.Second)
	defer cancel()
	s, err := open(ctx, c, folder)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	if c.Entry == "check" {
		o, err = s.check(ctx)
		return o, nil, err
	}
	return s.run(ctx)
}

// run starts the worker, publishes the turn and plays the case until the turn has ended.
func (s *session) run(ctx context.Context) (o *Observed, problems []string, err error) {
	faults, _ := s.c.failpoints()
	if s.worker, err = startWorker(ctx, s.folder, s.server.URL(), faults); err != nil {
		return nil, nil, err
	}
	p := &play{
		c: s.c, s: s, begun: time.Now(), acted: make([]bool, len(s.c.Actions)), struck: make([]bool, len(s.c.Faults)),
	}
	if err := s.publish(ctx, s.c.data()); err != nil {
		return nil, nil, err
	}
	if err := p.untilEnd(ctx); err != nil {
		return nil, nil, err
	}
	o, entries, err := s.observe(ctx)
	if err != nil {
		return nil, nil, err
	}
	violations, err := s.promise(ctx, entries)
	return o, slices.Concat(p.problems, p.undone(), violations), err
}

// untilEnd plays until the turn has ended and its messages are acknowledged, or the limit is over: then what was seen
// is compared all the same.
func (p *play) untilEnd(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Since(p.begun) < limit {
		records := p.s.journal.of(p.s.key())
		if err := p.step(ctx, records); err != nil {
			return err
		}
		if err := p.s.replaceKilled(ctx); err != nil {
			return err
		}
		if ended(records) != nil {
			return p.s.drain(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.s.journal.changed:
		case <-tick.C:
		}
	}
	p.problems = append(p.problems, fmt.Sprintf("the turn has not ended within %s", limit))
	return nil
}

// replaceKilled starts a worker without faults if the last one was killed.
func (s *session) replaceKilled(ctx context.Context) error {
	killed, err := s.worker.killed()
	if err != nil || !killed {
		return err
	}
	s.kills++
	s.worker, err = startWorker(ctx, s.folder, s.server.URL(), "")
	return err
}

// drain waits until the inbound stream is empty, so that duplicates are settled too.
func (s *session) drain(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(drainFor)
	defer over.Stop()
	for {
		if err := s.replaceKilled(ctx); err != nil {
			return err
		}
		stream, err := s.js.Stream(ctx, s.space.InStream())
		if err != nil {
			return fmt.Errorf("inbound stream: %w", err)
		}
		if stream.CachedInfo().State.Msgs == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return nil
		case <-tick.C:
		}
	}
}

// observe returns all that was seen, and the entries in the ledger. The worker is stopped on the way, since it writes its metrics then.
func (s *session) observe(ctx context.Context) (*Observed, []ledgerLine, error) {
	payloadFrom := seen(s.journal.of(s.key()), nil, s.root)
	if err := fetchPayload(ctx, s.client, payloadFrom); err != nil {
		return nil, nil, err
	}
	s.worker.stop()
	entries, err := readLedger(s.ledgerPath())
	if err != nil {
		return nil, nil, err
	}
	o := seen(s.journal.of(s.key()), entries, s.root)
	if payloadFrom.Response != nil { // else the turn has ended, if at all, while its worker was stopped
		o.Response = payloadFrom.Response
	}
	if o.Response != nil {
		o.Response["payload"] = withoutTurn(o.Response["payload"], s.root)
	}
	s.models.observe(o)
	if o.Context, err = contextOf(ctx, s.js, s.space, chat); err != nil {
		return nil, nil, fmt.Errorf("context variables: %w", err)
	}
	if o.States, err = statesIn(s.folder); err != nil {
		return nil, nil, fmt.Errorf("states: %w", err)
	}
	if others := s.journal.others(s.key()); len(others) > 0 {
		o.Remote = others[0].Event
	}
	metrics, err := os.ReadFile(filepath.Join(s.folder, fileMetrics))
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, fmt.Errorf("metrics: %w", err)
	}
	o.Metrics = string(metrics)
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Live, o.Dead = s.live, s.dead
	return o, entries, nil
}
