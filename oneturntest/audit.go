// audit.go collects the durable facts of a run after it has come to rest: the journal, the dead
// letters, the messages left, the ledger of the tools, and the live copies that [Audit] kept.

package oneturntest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// AuditStream keeps every live copy, so that [Check] also sees records that were overwritten or
// removed later.
const AuditStream = "ONETURNTEST_AUDIT"

// Audit starts to keep the live copies of all public records. Call it before the first turn.
func Audit(ctx context.Context, js jetstream.JetStream, space subjects.Space, replicas int) error {
	_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: AuditStream, Subjects: []string{space.EventsPrefix() + ".>"}, Replicas: replicas,
	})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Facts are the durable facts of a run, read after it has come to rest.
type Facts struct {
	Accepted []Accepted           // turns whose publish was acknowledged, but for those that messages make
	Messages []SentMessage        // messages of agents and users whose publish was acknowledged
	Ledger   []LedgerEntry        // entries and exits of tools
	Journal  []idempotency.Record // every record, in order
	Copies   []Copy               // live copies kept by Audit, in order
	Dead     []DeadLetter         // dead letters
	Left     uint64               // messages left in the inbound stream

	// Documents are the stored context variables of chats, by their key in the bucket: <app>.<chat> in tokens. Nil: not checked.
	Documents map[string][]byte

	// Answers are the answers that people sent, with their results, as far as the test recorded them.
	Answers []SentAnswer

	// NoLedger is set if the tools write no ledger: how often they ran is not checked.
	NoLedger bool

	// Within is how long a turn may take from when it was accepted, or from Healed if that is
	// later: the deadline of a tool and two ack waits. 0: not checked.
	Within time.Duration
	Healed time.Time // when the last injected fault was over: a worker was replaced, a link restored
}

// Accepted is a turn that the inbound stream took.
type Accepted struct {
	App, Chat, Run, Turn string
	Effect               string    // effect of its tool, for the test itself: [Check] uses the effect in the claim
	MayFail              bool      // it may end without a result of the tool
	MayWait              bool      // it may be at rest without an end: parked, with an undecided question
	Begun, At            time.Time // when it was to be published, and acknowledged; zero: unknown
}

// Key returns the journal key of the turn, which [Violation] and the map of [Check] use.
func (a *Accepted) Key() string { return subjects.TurnKey(a.App, a.Chat, a.Run, a.Turn).String() }

// SentMessage is a message of an agent or a user that the inbound stream took.
type SentMessage struct {
	Event     events.AgentMessage
	MayFail   bool      // its turn may end without a result of the tool
	MayWait   bool      // its turn may be at rest without an end: parked, with an undecided question
	Begun, At time.Time // when it was to be published, and acknowledged; zero: unknown
}

// Copy is a live copy of a public record: the message that the server published to subscribers when it stored the record.
type Copy struct {
	Key  string
	Seq  uint64 // sequence in the journal
	Data []byte
}

// DeadLetter is a dead letter without its data.
type DeadLetter struct {
	Reason, Subject string
	Header          nats.Header // all headers, including the sender's
}

// Mark is the position up to which facts were collected, so that a long run can be checked in
// parts, each time it has come to rest. The zero value is the beginning.
type Mark struct{ journal, copies, dead uint64 }

// Collect reads the facts of space from the server and the ledger file.
func Collect(ctx context.Context, nc *nats.Conn, space subjects.Space, ledger string) (*Facts, error) {
	f, _, err := CollectSince(ctx, nc, space, ledger, Mark{})
	return f, err
}

// AtRest waits until every message of the inbound stream is settled, at most until ctx ends, and
// collects. Call it after the last fault has healed, while a worker runs.
func AtRest(ctx context.Context, nc *nats.Conn, space subjects.Space, ledger string) (*Facts, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("at rest: %w", err)
	}
	const pollInterval = 10 * time.Millisecond
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		in, err := js.Stream(ctx, space.InStream())
		if err == nil && in.CachedInfo().State.Msgs == 0 {
			return Collect(ctx, nc, space, ledger)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("%d messages are left in %s", in.CachedInfo().State.Msgs, space.InStream())
			}
			return nil, fmt.Errorf("at rest: %w", err)
		}
	}
}

// CollectSince is [Collect] for what was stored after a mark, and returns the next mark. The
// ledger file is read whole: use a file for each part of the run, or empty it in between.
func CollectSince(ctx context.Context, nc *nats.Conn, space subjects.Space, ledger string, since Mark) (*Facts, Mark, error) {
	f := &Facts{}
	next, err := f.collect(ctx, nc, space, ledger, since)
	if err != nil {
		return nil, since, err
	}
	return f, next, nil
}

func (f *Facts) collect(ctx context.Context, nc *nats.Conn, space subjects.Space, ledger string, since Mark) (next Mark, err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return next, fmt.Errorf("collect: %w", err)
	}
	if f.Ledger, err = ReadLedger(ledger); err != nil {
		return next, err
	}
	in, err := js.Stream(ctx, space.InStream())
	if err != nil {
		return next, fmt.Errorf("collect: %w", err)
	}
	f.Left = in.CachedInfo().State.Msgs
	kv := kvstore.Read(nc, space)
	next.journal, err = eachMessage(ctx, js, space.TurnsStream(), since.journal, func(_ jetstream.Msg, seq uint64) error {
		r, err := kv.At(ctx, seq)
		if err == nil {
			f.Journal = append(f.Journal, r)
		}
		return err
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) { // a run may have taken the journal away
		return next, err
	}
	if f.Documents, err = documents(ctx, js, space); err != nil {
		return next, err
	}
	next.copies, err = eachMessage(ctx, js, AuditStream, since.copies, func(m jetstream.Msg, _ uint64) error {
		key := "e." + m.Subject()[len(space.EventsPrefix())+1:]
		var seq uint64
		if _, err := fmt.Sscan(m.Headers().Get("Nats-Sequence"), &seq); err != nil {
			return fmt.Errorf("collect: a live copy without sequence: %w", err)
		}
		f.Copies = append(f.Copies, Copy{Key: key, Seq: seq, Data: m.Data()})
		return nil
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return next, err
	}
	next.dead, err = eachMessage(ctx, js, space.DeadStream(), since.dead, func(m jetstream.Msg, _ uint64) error {
		f.Dead = append(f.Dead, DeadLetter{m.Headers().Get("Oneturn-Reason"), m.Headers().Get("Oneturn-Subject"), m.Headers()})
		return nil
	})
	return next, err
}

// documents reads the context variables of all chats.
func documents(ctx context.Context, js jetstream.JetStream, space subjects.Space) (map[string][]byte, error) {
	kv, err := js.KeyValue(ctx, space.ContextBucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil //nolint:nilnil // a run may have taken it away
	}
	if err != nil {
		return nil, fmt.Errorf("collect the context variables: %w", err)
	}
	all, err := kv.WatchAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("collect the context variables: %w", err)
	}
	defer func() { _ = all.Stop() }()
	found := map[string][]byte{}
	for e := range all.Updates() {
		if e == nil { // these are all
			return found, nil
		}
		if e.Operation() == jetstream.KeyValuePut {
			found[e.Key()] = e.Value()
		}
	}
	return found, ctx.Err()
}

// eachMessage calls f for every message of a stream after a sequence, as it is now, and
// returns the last sequence.
func eachMessage(ctx context.Context, js jetstream.JetStream, name string, since uint64, f func(m jetstream.Msg, seq uint64) error) (last uint64, err error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return since, fmt.Errorf("collect %s: %w", name, err)
	}
	state := stream.CachedInfo().State
	last = max(since, state.LastSeq)
	if state.Msgs == 0 || state.LastSeq <= since {
		return last, nil
	}
	c, err := js.OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: since + 1,
	})
	if err != nil {
		return last, fmt.Errorf("collect %s: %w", name, err)
	}
	messages, err := c.Messages()
	if err != nil {
		return last, fmt.Errorf("collect %s: %w", name, err)
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextMaxWait(10 * time.Second))
		if err != nil {
			return last, fmt.Errorf("collect %s: %w", name, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return last, fmt.Errorf("collect %s: %w", name, err)
		}
		if err := f(m, meta.Sequence.Stream); err != nil {
			return last, err
		}
		if meta.Sequence.Stream >= last || meta.NumPending == 0 {
			return last, nil
		}
	}
}
