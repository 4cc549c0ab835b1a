package catalog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// TTL is how long a record outlives its last write.
const TTL = 7 * 24 * time.Hour

// The times of an [Announcer].
const (
	announceEvery = 6 * time.Hour // and up to a quarter more or less
	renewAfter    = TTL / 2
	firstRetry    = time.Second // doubled after each failure
	lastRetry     = 10 * time.Minute
)

// Announcer keeps the records of the workflows that a worker has. Make it with [NewAnnouncer].
type Announcer struct {
	store   store
	space   subjects.Space
	pool    string
	current func() []Workflow
	logger  *slog.Logger
	changed chan struct{}
}

// NewAnnouncer returns the announcer of a worker of a pool; current returns the workflows that the worker has now, without
// pools. It does no I/O.
func NewAnnouncer(js jetstream.JetStream, space subjects.Space, pool string, current func() []Workflow, logger *slog.Logger) *Announcer {
	return &Announcer{store: &bucket{js, space}, space: space, pool: pool, current: current, logger: logger, changed: make(chan struct{}, 1)}
}

// Changed makes [Announcer.Run] announce again. It returns immediately.
func (a *Announcer) Changed() {
	select {
	case a.changed <- struct{}{}:
	default: // it is about to
	}
}

// Run announces the workflows until ctx ends: first, after each change, and about every six hours. It writes only records
// that differ from the stored ones or have lived for more than half of their time. What fails is tried again; only the
// first failure in a row is logged.
func (a *Announcer) Run(ctx context.Context) {
	failures := 0
	for {
		err := a.announce(ctx)
		if ctx.Err() != nil {
			return
		}
		failures = a.report(err, failures)
		again := time.NewTimer(nextAnnouncement(failures))
		select {
		case <-again.C:
		case <-a.changed:
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// report logs the first of several failures and the success after them, and returns the number of failures in a row.
func (a *Announcer) report(err error, failures int) int {
	switch {
	case err == nil && failures > 0:
		a.logger.Info("workflows are announced again", "failures", failures)
		return 0
	case err == nil:
		return 0
	case failures == 0 && !errors.Is(err, errTaken):
		a.logger.Warn("workflows are not announced: gateways do not know them; it is tried again", "err", events.LogText(err))
	}
	return failures + 1
}

// nextAnnouncement is when to announce again after so many failures in a row. Workers that were started together spread.
func nextAnnouncement(failures int) time.Duration {
	wait := announceEvery
	if failures > 0 {
		wait = min(firstRetry<<min(failures-1, 10), lastRetry)
	}
	return wait*3/4 + rand.N(wait/2)
}

// announce writes the records that need it. One that cannot be written does not prevent the others.
func (a *Announcer) announce(ctx context.Context) error {
	have, err := a.store.read(ctx)
	if err != nil {
		return err
	}
	stored := make(map[string]entry, len(have.stored))
	for _, e := range have.stored {
		stored[e.subject] = e
	}
	var errs []error
	for _, w := range a.current() {
		data, err := encode(w, a.pool)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		subject := a.space.WorkflowSubject(w.Name, a.pool)
		old := stored[subject]
		if bytes.Equal(old.data, data) && have.now.Sub(old.time) < renewAfter {
			continue
		}
		switch err := a.store.write(ctx, subject, data, old.seq); {
		case errors.Is(err, errTaken):
			errs = append(errs, err)
		case err != nil: // the server is away, or the bucket is full
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(errs...)
}
