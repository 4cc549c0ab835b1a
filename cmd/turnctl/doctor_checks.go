package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/provision"
)

// The checks of the server and of what is stored on it, in the order in which examine runs them. Each adds its
// findings under a stable name. A check whose stream is missing adds nothing: the check of streams reports that.

const (
	maxSkew   = 5 * time.Second // of the clocks, beyond what a request takes
	highWater = 85              // percent of a limit that is nearly used up
)

// examine runs all checks that need a connection. It ends at a failed check that the following ones depend
// on.
func (d *diagnosis) examine(ctx context.Context, s *server, cfg *config.Provision, plan provision.Plan, now func() time.Time) {
	defer d.rights(s)
	d.reach(s)
	if err := provision.CheckServer(s.nc); err != nil {
		d.addf("version", diag.SeverityError, "", "%v", err)
		return
	}
	d.addf("version", severityOK, "", "NATS server %s, at least %s is needed", s.nc.ConnectedServerVersion(), provision.MinServer)
	if !d.jetStream(ctx, s) {
		return
	}
	d.streams(ctx, s, plan)
	d.mirror(ctx, s)
	d.queues(ctx, s, cfg.Pools)
	d.questions(ctx, s)
	d.unconsumed(ctx, s)
	d.clock(ctx, s, now)
	d.workers(ctx, s)
	if d.Tier = s.tier(ctx, plan); d.Tier != nil {
		d.addf("durability", diag.SeverityInfo, "", "%s: %s", d.Tier.Name, d.Tier.Text)
	}
}

// rights reports what the server denied during the checks: a denied request has no response, so its check
// reports a timeout.
func (d *diagnosis) rights(s *server) {
	const all = time.Hour
	if err := s.denied.Err(all); err != nil {
		d.addf("rights", diag.SeverityError, "see the permissions of each role in docs/operations.md", "%v", err)
	}
}

// unreachable reports that there is no connection, with the fix.
func (d *diagnosis) unreachable(err error) {
	var known *config.ConnectError
	if errors.As(err, &known) {
		d.addf("reach", diag.SeverityError, known.Fix, "%v", known.Err)
		return
	}
	d.addf("reach", diag.SeverityError, "check --nats, --context and the credentials", "%v", err)
}

func (d *diagnosis) reach(s *server) {
	rtt, err := s.nc.RTT()
	if err != nil {
		d.addf("reach", diag.SeverityWarning, "", "%s does not answer a ping: %v", s.nc.ConnectedUrlRedacted(), err)
		return
	}
	d.addf("reach", severityOK, "", "%s, round trip %.1f ms", s.nc.ConnectedUrlRedacted(), milliseconds(rtt))
}

// jetStream checks that the account has JetStream, and free storage.
func (d *diagnosis) jetStream(ctx context.Context, s *server) bool {
	used, limit, err := provision.StoreUse(ctx, s.js, s.space.TurnsStream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return true // a tiered account: check streams reports what is missing
	}
	if err != nil {
		d.addf("jetstream", diag.SeverityError, "enable JetStream in the configuration of the server and for this account", "%v", err)
		return false
	}
	switch {
	case limit <= 0:
		d.addf("jetstream", severityOK, "", "%s stored; the account has no limit, only the disk limits it", bytesText(uint64(used)))
	case used*100 >= limit*highWater:
		d.addf("jetstream", diag.SeverityError, "raise the storage limit of the account, or shorten the retention: workers claim no new turns above "+strconv.Itoa(highWater)+" %, and a full journal refuses responses",
			"the store is nearly full: %s of %s are used", bytesText(uint64(used)), bytesText(uint64(limit)))
	default:
		d.addf("jetstream", severityOK, "", "%s of %s are used", bytesText(uint64(used)), bytesText(uint64(limit)))
	}
	d.reserve(ctx, s, limit)
	return true
}

// reserve checks that what grows in a nearly full store leaves room for responses.
func (d *diagnosis) reserve(ctx context.Context, s *server, limit int64) {
	growth, err := provision.Growth(ctx, s.js, s.space)
	kept := limit / 100 * provision.ReservePercent
	if err != nil || limit <= 0 || growth <= kept { // check streams reports missing ones
		return
	}
	fits := provision.Options{}.Within(limit)
	d.addf("jetstream", diag.SeverityWarning, fmt.Sprintf("run turnctl provision --in-max-bytes %d --dead-max-bytes %d, or raise the storage limit of the account", fits.InMaxBytes, fits.DeadMaxBytes),
		"inbound messages, deferred messages and dead letters may fill the %s that are reserved for responses when the store is nearly full", bytesText(uint64(kept)))
}

// streams compares the streams, buckets and consumers with the plan.
func (d *diagnosis) streams(ctx context.Context, s *server, plan provision.Plan) {
	found, err := provision.Check(ctx, s.js, plan)
	if err != nil {
		d.addf("streams", diag.SeverityError, "", "%v", err)
		return
	}
	if len(found) == 0 {
		d.addf("streams", severityOK, "", "streams, buckets and consumers are as planned")
	}
	for _, f := range found {
		what := f.Object
		if f.Setting != "" {
			what += ": " + f.Setting
		}
		d.addf("streams", f.Severity, f.Fix, "%s is %s, expected %s", what, f.Have, f.Want)
	}
}

// queues reports the waiting messages of each pool, and the number of dead letters.
func (d *diagnosis) queues(ctx context.Context, s *server, pools []string) {
	for _, pool := range pools {
		consumer, err := s.js.Consumer(ctx, s.space.InStream(), s.space.WorkerConsumer(pool))
		if err != nil {
			continue // reported by check streams
		}
		info := consumer.CachedInfo()
		d.addf("queue", diag.SeverityInfo, "", "pool %s: %s waiting, %d in work, %d of them delivered again",
			pool, plural.Of(info.NumPending, "message"), info.NumAckPending, info.NumRedelivered)
	}
	dead, err := s.js.Stream(ctx, s.space.DeadStream())
	if err != nil {
		return
	}
	if n := dead.CachedInfo().State.Msgs; n > 0 {
		d.addf("dead", diag.SeverityWarning, "see turnctl dead ls",
			"%s could not be handled", plural.Of(n, "message"))
		d.fullShares(ctx, s, dead)
		return
	}
	d.addf("dead", severityOK, "", "no dead letters")
}

// fullShares reports the tenants whose newer dead letters replace the oldest.
func (d *diagnosis) fullShares(ctx context.Context, s *server, dead jetstream.Stream) {
	share := dead.CachedInfo().Config.MaxMsgsPerSubject
	info, err := dead.Info(ctx, jetstream.WithSubjectFilter(s.space.DeadSubjects()))
	if err != nil || share <= 0 {
		return // reported by check streams
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if app, kind, ok := s.space.ParseDead(subject); ok && info.State.Subjects[subject] >= uint64(share) {
			d.addf("dead", diag.SeverityWarning, "fix their sender; redrive or drop the stored ones",
				"app %s has the maximum of %d dead letters of kind %s: newer ones replace its oldest", id(shown(app)), share, id(shown(kind)))
		}
	}
}

// questions counts the questions with a running answer time, by their timers; only the journal
// records which of them are open.
func (d *diagnosis) questions(ctx context.Context, s *server) {
	asked, err := s.reader.Timers(ctx, s.space.AskTimersOfTenant(idempotency.AnyToken))
	if err != nil || len(asked) == 0 {
		return // reported by streams
	}
	d.addf("questions", diag.SeverityInfo, "", "%s with a time limit that has not passed, answered ones included: list the open ones with turnctl questions ls, and answer one with publisher answer", plural.Of(len(asked), "question"))
}

// clock compares the clocks. No guarantee depends on them, but the age of events does.
func (d *diagnosis) clock(ctx context.Context, s *server, now func() time.Time) {
	before := now()
	stream, err := s.js.Stream(ctx, s.space.TurnsStream())
	if err != nil || stream.CachedInfo().TimeStamp.IsZero() {
		return
	}
	server := stream.CachedInfo().TimeStamp
	skew := max(before.Sub(server), server.Sub(now()))
	if skew > maxSkew {
		d.addf("clock", diag.SeverityWarning, "synchronize both clocks, for example with NTP", "the clocks of this machine and of the server differ by %s", skew.Round(time.Second))
		return
	}
	d.addf("clock", severityOK, "", "this machine and the server agree within %s", maxSkew)
}
