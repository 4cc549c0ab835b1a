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

// Bounds of a sweep.
const (
	// Rate is how many headers a second a sweep reads, and how many turns it looks at.
	Rate = 5_000
	// Budget is of how many open turns a sweep reads something; the next one goes on behind them.
	// Parked turns without a new record are not among them.
	Budget = 500_000
	// maxFailures in a row end a sweep: the server cannot be reached.
	maxFailures = 10
)

// Sweep finds the turns that nobody will end any more (design 5.16): turns without response
// whose newest lease message is gone from its stream and that are not parked, and turns past
// their life. All fields without a default are required.
type Sweep struct {
	Space     subjects.Space
	JS        jetstream.JetStream
	Store     idempotency.Store
	LeaseHeld func(ctx context.Context, l idempotency.Lease) (bool, error)
	// AckWait is that of the workers' consumer. A turn younger than twice of it is left alone.
	AckWait time.Duration
	// MaxTurnLife is how long after its claim a turn is past its life. 0 means never.
	MaxTurnLife time.Duration
	// Erase erases what is sealed of a turn that has ended: its worker died before it did. Nil
	// leaves that to others.
	Erase func(ctx context.Context, key subjects.Key) (int, error)
	// Rate bounds the reading, a second. 0 means no limit.
	Rate int
	// Budget bounds of how many open turns something is read. 0 means no limit.
	Budget int
	// PageTurns is how many open turns are kept together. 0 means 500.
	PageTurns int
	// AtOnce is how many turns are looked at together. 0 means 8.
	AtOnce int
	Logger *slog.Logger
}

// Condition is what a sweep finds a turn in.
type Condition string

// The conditions. Only the last three call for a resume.
const (
	TurnEnded     Condition = "ended"
	TurnUnclaimed Condition = "unclaimed"
	TurnYoung     Condition = "young"  // claimed too lately to judge
	TurnParked    Condition = "parked" // waits for an answer
	TurnHeld      Condition = "held"   // its message is in the stream and comes back
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
	Age       time.Duration     // since the claim, 0 for an unclaimed one
	Turn      *idempotency.Turn // as the leader knows it
}

// formerEnd reports whether a turn has ended only as a former life of its key, before the claim of a sequence.
func (f *Finding) formerEnd(claim uint64) bool {
	return f.Condition == TurnEnded && f.Turn != nil && f.Turn.Response.Former(claim)
}

// Check looks at one turn. Now is the time of the server.
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

// ended asks for the response alone, which costs the server less than the whole turn. One that is
// older than the claim, 0 if that is not known, belongs to a former life of the key.
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
	case f.Age <= 2*s.AckWait:
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
	claim := f.Turn.Claim
	e := &events.Resume{Key: f.Key.String()}
	if call, reused := query.Call(f.Key, claim); call != nil {
		e.TurnID = events.TurnID{App: call.AppID, Chat: call.ChatID, Run: call.RunID, Turn: call.Turn}
		e.Workflow = call.WorkflowName
		if !reused {
			e.Key = ""
		}
	}
	body, err := events.EncodeResume(e, time.Now())
	if err != nil {
		return 0, fmt.Errorf("resume turn %s: %w", f.Key, err)
	}
	pool := cmp.Or(claim.Meta.Pool, subjects.DefaultPool)
	if subjects.CheckPool(pool) != nil {
		pool = subjects.DefaultPool
	}
	subject, ok := s.Space.InOf(subjects.Inbound{
		Pool: pool, Kind: events.KindResume, App: f.Key.App, Workflow: subjects.Token(e.Workflow), Chat: f.Key.Chat,
	})
	if !ok {
		return 0, fmt.Errorf("resume turn %s: its key holds something that is no token", f.Key)
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: body}
	if claim.Meta.Trace != "" {
		m.Header[idempotency.HeaderTrace] = []string{claim.Meta.Trace}
	}
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	ack, err := s.JS.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("resume turn %s: %w", f.Key, err)
	}
	return ack.Sequence, nil
}

// LeaseHeld returns the function that asks a stream's leader whether the message of a lease is
// still there. A lease that names another stream than the prefix has is held by nobody.
func LeaseHeld(js jetstream.JetStream, space subjects.Space) func(context.Context, idempotency.Lease) (bool, error) {
	return func(ctx context.Context, l idempotency.Lease) (bool, error) {
		if l.Seq == 0 || l.Stream != space.InStream() && l.Stream != space.TimersStream() {
			return false, nil
		}
		_, err := jsapi.Read(ctx, js.Conn(), l.Stream, jsapi.Get{Seq: l.Seq})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}
