package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Bounds of a sweep.
const (
	// SweepRate is how many headers a second a sweep reads, and how many turns it looks at.
	SweepRate = 5_000
	// maxTracked is how many open turns a sweep remembers while it reads; the newest beyond
	// that wait for the next one.
	maxTracked = 100_000
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
	Rate   int
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

// Mend reports whether a turn in this condition needs a resume to end.
func (c Condition) Mend() bool { return c == TurnOrphaned || c == TurnCorrupt || c == TurnExpired }

// Finding is a turn as a sweep sees it.
type Finding struct {
	Key       subjects.Key
	Condition Condition
	Age       time.Duration     // since the claim, 0 for an unclaimed one
	Turn      *idempotency.Turn // as the leader knows it
}

// Judge looks at one turn. Now is the time of the server.
func (s *Sweep) Judge(ctx context.Context, key subjects.Key, now time.Time) (Finding, error) {
	f, err := s.judge(ctx, key, now)
	if err != nil || f.Condition != TurnOrphaned && f.Condition != TurnCorrupt {
		return f, err
	}
	// It may have ended between the two reads: then its message is gone.
	ended, err := s.ended(ctx, key)
	if err != nil || !ended {
		return f, err
	}
	return s.judge(ctx, key, now)
}

// ended asks for the response alone, which costs the server less than the whole turn.
func (s *Sweep) ended(ctx context.Context, key subjects.Key) (bool, error) {
	_, err := s.Store.Last(ctx, key.Public(events.KindToolResponse))
	if errors.Is(err, idempotency.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sweep: turn %s: %w", key, err)
	}
	return true, nil
}

func (s *Sweep) judge(ctx context.Context, key subjects.Key, now time.Time) (Finding, error) {
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
	case s.MaxTurnLife > 0 && f.Age > s.MaxTurnLife && t.Claim.Meta.Verdict == "":
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
	if call, reused := readCall(f.Key, claim); call != nil {
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
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	ack, err := s.JS.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("resume turn %s: %w", f.Key, err)
	}
	return ack.Sequence, nil
}

// Scope bounds what a sweep looks at. The zero value is everything.
type Scope struct{ App, Chat string }

// Swept is what came of a sweep.
type Swept struct {
	Next    SweepState    // what the next sweep goes on from
	Headers int           // records of the journal read
	Open    int           // turns without a response
	Oldest  time.Duration // age of the oldest of them
	Young   int           // of them claimed too lately to judge
	Wait    time.Duration // until the last of the young ones can be judged
	Mended  int           // turns that act was called for, without an error
	Erased  int           // sealed records of ended turns
	Failed  int           // turns that could not be read, or whose act failed
}

// open notes an open turn.
func (s *Swept) open(age time.Duration, young bool, wait time.Duration) {
	s.Open++
	s.Oldest = max(s.Oldest, age)
	if young {
		s.Young++
		s.Wait = max(s.Wait, wait)
	}
}

// Wait is how long it takes until a turn of this age is old enough to judge.
func (s *Sweep) Wait(age time.Duration) time.Duration { return max(0, 2*s.AckWait-age) }

// Run reads the journal from where the last sweep ended and calls act for each turn that
// needs a resume. It may be stopped or repeated at any point. Now is the time of the server.
func (s *Sweep) Run(ctx context.Context, from SweepState, now time.Time, scope Scope, act func(context.Context, Finding) error) (Swept, error) {
	var out Swept
	open, err := s.read(ctx, &out, from, scope)
	if err != nil {
		return out, err
	}
	pace := newPacer(s.Rate)
	failures := 0
	for i, c := range open {
		if c.at.IsZero() || now.Sub(c.at) > 2*s.AckWait {
			f, err := s.look(ctx, c.key, now)
			if err == nil {
				err = s.mend(ctx, &out, c, f, act)
			}
			switch {
			case ctx.Err() != nil:
				return out, fmt.Errorf("sweep: %w", context.Cause(ctx))
			case err != nil:
				out.Failed++
				s.Logger.Warn("a turn could not be swept; the next sweep tries again", "key", c.key.String(), "err", err)
				if failures++; failures >= maxFailures {
					return out, err
				}
			default:
				failures = 0
			}
			if f.Condition == TurnEnded || f.Condition == TurnUnclaimed {
				open[i].ended = err == nil
				continue
			}
			out.open(f.Age, f.Condition == TurnYoung, s.Wait(f.Age))
			if err := pace.wait(ctx); err != nil {
				return out, fmt.Errorf("sweep: %w", err)
			}
		} else {
			age := now.Sub(c.at)
			out.open(age, true, s.Wait(age))
		}
	}
	out.Next.carry(slices.DeleteFunc(open, func(c openClaim) bool { return c.ended }))
	return out, nil
}

// look is Judge for a turn that has most likely ended.
func (s *Sweep) look(ctx context.Context, key subjects.Key, now time.Time) (Finding, error) {
	ended, err := s.ended(ctx, key)
	if err != nil || ended {
		return Finding{Key: key, Condition: TurnEnded}, err
	}
	return s.Judge(ctx, key, now)
}

// mend does what a turn in its condition needs.
func (s *Sweep) mend(ctx context.Context, out *Swept, c openClaim, f Finding, act func(context.Context, Finding) error) error {
	switch {
	case f.Condition == TurnEnded && c.secret:
		return s.erase(ctx, out, c.key)
	case f.Condition.Mend():
		if err := act(ctx, f); err != nil {
			return err
		}
		out.Mended++
	}
	return nil
}

// erase erases what is left of a turn's secrets.
func (s *Sweep) erase(ctx context.Context, out *Swept, key subjects.Key) error {
	if s.Erase == nil {
		return nil
	}
	n, err := s.Erase(ctx, key)
	out.Erased += n
	if err != nil {
		return fmt.Errorf("sweep: erase the secrets of turn %s: %w", key, err)
	}
	return nil
}

// openClaim is a claim whose response was not seen, or a turn that has ended and may have secrets
// left.
type openClaim struct {
	key    subjects.Key
	seq    uint64
	at     time.Time // zero for one that was carried over
	ended  bool
	secret bool // something is sealed of it
}

// read returns the open claims, oldest first, and sets where the next sweep reads from.
func (s *Sweep) read(ctx context.Context, out *Swept, from SweepState, scope Scope) ([]openClaim, error) {
	name := s.Space.TurnsStream()
	stream, err := s.JS.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("sweep: stream %s: %w", name, err)
	}
	last := stream.CachedInfo().State.LastSeq
	if from.From > last+1 { // another journal than the one that the last sweep read
		from = SweepState{}
	}
	tracked := from.claims()
	out.Next.From = last + 1
	if from.From > last {
		return sorted(tracked), nil
	}
	in, secret := scope.matcher(), map[subjects.Key]uint64{}
	err = Headers{JS: s.JS, Rate: s.Rate}.Read(ctx, name, from.From, last, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
		out.Headers++
		key, _ := s.Space.JournalKeyOf(m.Subject())
		r, ok := subjects.ParseKey(key)
		_, known := tracked[r.Key]
		if ok && r.Private && idempotency.Secrecy(m.Headers().Get(idempotency.HeaderSecret)) == idempotency.Sealed && in(r.Key) {
			if len(secret) < maxTracked {
				secret[r.Key] = meta.Sequence.Stream
			} else {
				out.Next.From = min(out.Next.From, meta.Sequence.Stream)
			}
		}
		switch {
		case !ok || r.Private || r.ID != "" || r.Call != subjects.SingleCall || !in(r.Key):
		case r.Kind == events.KindToolResponse:
			if c := tracked[r.Key]; c.secret {
				secret[r.Key] = c.seq
			}
			delete(tracked, r.Key)
		case r.Kind != events.KindToolCall:
		case known || len(tracked) < maxTracked:
			tracked[r.Key] = openClaim{key: r.Key, seq: meta.Sequence.Stream, at: meta.Timestamp}
		default:
			out.Next.From = min(out.Next.From, meta.Sequence.Stream)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	for key, seq := range secret {
		c, open := tracked[key]
		if !open { // it has ended: looked at like one that was carried over
			c = openClaim{key: key, seq: seq}
		}
		c.secret = true
		tracked[key] = c
	}
	return sorted(tracked), nil
}

// matcher returns the function that tells the turns of the scope.
func (s Scope) matcher() func(subjects.Key) bool {
	app, chat := subjects.Token(s.App), subjects.Token(s.Chat)
	return func(k subjects.Key) bool { return (s.App == "" || k.App == app) && (s.Chat == "" || k.Chat == chat) }
}

func sorted(tracked map[subjects.Key]openClaim) []openClaim {
	open := make([]openClaim, 0, len(tracked))
	for _, c := range tracked {
		open = append(open, c)
	}
	slices.SortFunc(open, func(a, b openClaim) int { return cmp.Compare(a.seq, b.seq) })
	return open
}

// LeaseHeld returns the function that asks a stream's leader whether the message of a lease is
// still there. A lease that names another stream than the prefix has is held by nobody.
func LeaseHeld(js jetstream.JetStream, space subjects.Space) func(context.Context, idempotency.Lease) (bool, error) {
	return func(ctx context.Context, l idempotency.Lease) (bool, error) {
		if l.Seq == 0 || l.Stream != space.InStream() && l.Stream != space.TimersStream() {
			return false, nil
		}
		found, err := leaderRead(ctx, js.Conn(), l.Stream, fmt.Sprintf(`{"seq":%d}`, l.Seq))
		if errors.Is(err, idempotency.ErrNotFound) {
			return false, nil
		}
		return found > 0, err
	}
}
