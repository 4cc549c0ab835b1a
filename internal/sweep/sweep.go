package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// This file has the settings of a sweep and what concerns a single turn: its condition (Check), which needs the journal
// and the stream of its lease, and its resume (Resume).

// Bounds of a sweep.
const (
	// Rate is how many headers a second a sweep reads, and how many turns it checks.
	Rate = 5_000
	// Budget is of how many open turns a sweep reads something; the next sweep continues after them.
	// Parked turns without a new record are not among them.
	Budget = 500_000
	// maxFailures in a row end a sweep: the server cannot be reached.
	maxFailures = 10
)

// Sweep finds the turns that no worker will end any more (docs/journal.md, rule 16): turns without
// response whose newest lease message is gone from its stream and that are not parked, and turns past
// their life. All fields without a default are required.
type Sweep struct {
	Space     subjects.Space
	JS        jetstream.JetStream
	Store     idempotency.Store
	LeaseHeld func(ctx context.Context, l idempotency.Lease) (bool, error)
	// AckWait is the ack wait of the workers' consumer. A turn younger than twice of it is not checked.
	AckWait time.Duration
	// MaxTurnLife is how long after its claim a turn is past its life. 0 means never.
	MaxTurnLife time.Duration
	// Erase erases the sealed records of a turn that has ended and whose worker died before it did so.
	// Nil leaves that to other sweeps.
	Erase func(ctx context.Context, key subjects.Key) (int, error)
	// Rate bounds the reading, a second. 0 means no limit.
	Rate int
	// Budget bounds of how many open turns something is read. 0 means no limit.
	Budget int
	// PageTurns is how many open turns are kept together. 0 means 500.
	PageTurns int
	// Concurrency is how many turns are checked at the same time. 0 means 8.
	Concurrency int
	Logger      *slog.Logger
}

// MinAge is how old a turn has to be to be checked: a younger one may still be taken over by a redelivery.
func (s *Sweep) MinAge() time.Duration { return 2 * s.AckWait }

// Condition is what a sweep finds a turn in.
type Condition string

// The conditions. Only the last three call for a resume.
const (
	TurnEnded     Condition = "ended"
	TurnUnclaimed Condition = "unclaimed"
	TurnYoung     Condition = "young"  // younger than the MinAge of the sweep
	TurnParked    Condition = "parked" // waits for an answer
	TurnHeld      Condition = "held"   // its message is in the stream and will be redelivered
	TurnOrphaned  Condition = "orphaned"
	TurnCorrupt   Condition = "corrupt" // orphaned, and a record of it cannot be read
	TurnExpired   Condition = "expired" // past its life
)

// NeedsResume reports whether a turn in this condition needs a resume to end.
func (c Condition) NeedsResume() bool {
	return c == TurnOrphaned || c == TurnCorrupt || c == TurnExpired
}

// Finding is a turn as a sweep sees it.
type Finding struct {
	Key       subjects.Key
	Condition Condition
	Age       time.Duration       // since the claim, 0 for an unclaimed one
	Turn      *idempotency.Turn   // as the leader knows it
	Text      *idempotency.Record // of a message, in place of Turn
	Of        subjects.Key        // the turn that a message waits for, if it waits for one
}

// endedEarlier reports whether the response is the one of an earlier turn of the key, before the claim of a sequence.
func (f *Finding) endedEarlier(claim uint64) bool {
	return f.Condition == TurnEnded && f.Turn != nil && f.Turn.Response.Former(claim)
}

// Check determines the condition of one turn. Now is the time of the server.
func (s *Sweep) Check(ctx context.Context, key subjects.Key, now time.Time) (Finding, error) {
	f, err := s.check(ctx, key, now)
	if err != nil || f.Condition != TurnOrphaned && f.Condition != TurnCorrupt {
		return f, err
	}
	// It may have ended between the two reads: then its message is gone.
	ended, err := s.ended(ctx, key, f.Turn.Claim.Seq)
	if err != nil || !ended {
		return f, err
	}
	return s.check(ctx, key, now)
}

// ended reads the response alone, which costs the server less than the whole turn. One that is
// older than the claim, 0 if that is not known, belongs to an earlier turn of the key.
func (s *Sweep) ended(ctx context.Context, key subjects.Key, claim uint64) (bool, error) {
	response, err := s.Store.Last(ctx, key.Public(events.KindToolResponse))
	if errors.Is(err, idempotency.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sweep: turn %s: %w", key, err)
	}
	return !response.Former(claim), nil
}

func (s *Sweep) check(ctx context.Context, key subjects.Key, now time.Time) (Finding, error) {
	t, err := idempotency.Load(ctx, s.Store, key)
	if err != nil {
		return Finding{}, fmt.Errorf("sweep: turn %s: %w", key, err)
	}
	f := Finding{Key: key, Turn: t}
	if t.Claim != nil {
		f.Age = now.Sub(t.Claim.Time)
	}
	switch {
	case t.Response != nil:
		f.Condition = TurnEnded
	case t.Claim == nil:
		f.Condition = TurnUnclaimed
	case s.MaxTurnLife > 0 && f.Age > s.MaxTurnLife && t.Claim.Meta.Outcome == "":
		f.Condition = TurnExpired
	case f.Age <= s.MinAge():
		f.Condition = TurnYoung
	case t.Parked():
		f.Condition = TurnParked
	default:
		held, err := s.LeaseHeld(ctx, t.Lease)
		if err != nil {
			return f, fmt.Errorf("sweep: turn %s: %w", key, err)
		}
		switch {
		case held:
			f.Condition = TurnHeld
		case t.Corrupt():
			f.Condition = TurnCorrupt
		default:
			f.Condition = TurnOrphaned
		}
	}
	return f, nil
}

// Resume publishes the inbound message that makes a worker of the turn's pool end it, and
// returns its sequence. A turn may be resumed any number of times.
func (s *Sweep) Resume(ctx context.Context, f Finding) (uint64, error) {
	e := &events.Resume{Key: f.Key.String(), Message: f.Text != nil}
	if f.Text != nil {
		if text, err := events.ReadText(f.Text.Data); err == nil {
			e.TurnID, e.Workflow = events.TurnID{App: text.AppID, Chat: text.ChatID, Run: text.RunID}, text.WorkflowName
		}
		return s.publishResume(ctx, f.Key, e, f.Text)
	}
	claim := f.Turn.Claim
	if call, reused := query.Call(f.Key, claim); call != nil {
		e.TurnID = events.TurnID{App: call.AppID, Chat: call.ChatID, Run: call.RunID, Turn: call.Turn}
		e.Workflow = call.WorkflowName
		if !reused {
			e.Key = ""
		}
	}
	return s.publishResume(ctx, f.Key, e, claim)
}

// publishResume publishes a resume to the pool of the worker that has stored the claim.
func (s *Sweep) publishResume(ctx context.Context, key subjects.Key, e *events.Resume, claim *idempotency.Record) (uint64, error) {
	body, err := events.EncodeResume(e, time.Now())
	if err != nil {
		return 0, fmt.Errorf("resume turn %s: %w", key, err)
	}
	pool := cmp.Or(claim.Meta.Pool, subjects.DefaultPool)
	if subjects.CheckPool(pool) != nil {
		pool = subjects.DefaultPool
	}
	subject, ok := s.Space.InOf(subjects.Inbound{
		Pool: pool, Kind: events.KindResume, App: key.App, Workflow: subjects.Token(e.Workflow), Chat: key.Chat,
	})
	if !ok {
		return 0, fmt.Errorf("resume turn %s: its key or its workflow is not a valid subject token", key)
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: body}
	if claim.Meta.Trace != "" {
		m.Header[idempotency.HeaderTrace] = []string{claim.Meta.Trace}
	}
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	ack, err := s.JS.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("resume turn %s: %w", key, err)
	}
	return ack.Sequence, nil
}
