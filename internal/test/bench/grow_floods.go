package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// Floods are thousands of messages of one tenant that only wait: turns of an unknown workflow, and answers to questions
// of a retired one. The measurement compares how long turns of another tenant take with and without them.

// floodRounds is how often quiet and flood follow each other.
const floodRounds = 2

// otherTenant are the tenant, chat and workflow of the messages that wait: no worker has the workflow.
const otherTenant, otherTenantFlow = "other", "Nowhere"

// flood is one kind of messages that wait.
type flood struct {
	name    string
	prepare func(g *growth, ctx context.Context, l *lab) error
	message func(l *lab, n int) (*nats.Msg, error)
	ends    bool // by itself, after the binding grace
}

func floods() []flood {
	return []flood{
		{"turns of an unknown workflow", nil, unknownTurn, true},
		{"answers to open questions of a retired workflow", (*growth).retire, lateAnswer, false},
	}
}

// floods measures what turns of one tenant have to wait while thousands of messages of another one
// only wait; next to it, in the same run and in turn with it, without them.
func (g *growth) floods(ctx context.Context) error {
	for _, f := range floods() {
		s := spec{Payload: "flat", InFlight: headline, BindingGrace: g.grace}
		if err := g.with(ctx, s, func(l *lab) error { return g.floodOf(ctx, l, f) }); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (g *growth) floodOf(ctx context.Context, l *lab, f flood) error {
	if _, _, err := l.startWorker(ctx, product); err != nil {
		return err
	}
	if f.prepare != nil {
		if err := f.prepare(g, ctx, l); err != nil {
			return err
		}
	}
	p, err := newProbe(l)
	if err != nil {
		return err
	}
	if _, err := p.pace(ctx, g.rate, g.warmTime()); err != nil {
		return err
	}
	var quiet, busy []float64
	part := g.floodCount / floodRounds
	for round := range floodRounds {
		waiting, err := f.messages(l, round*part, part)
		if err != nil {
			return err
		}
		calm, err := p.pace(ctx, g.rate, g.paced)
		if err != nil {
			return err
		}
		var sending errgroup.Group
		sending.Go(func() error { return l.flood(ctx, waiting, max(int(float64(part)/g.paced.Seconds()), 1)) })
		stormy, err := p.pace(ctx, g.rate, g.paced)
		if err = errors.Join(err, sending.Wait()); err != nil {
			return err
		}
		if f.ends {
			if err := l.ebb(ctx); err != nil {
				return err
			}
		}
		quiet, busy = append(quiet, calm...), append(busy, stormy...)
	}
	slices.Sort(quiet)
	slices.Sort(busy)
	on := fmt.Sprintf("%d %s, %d turns/s", g.floodCount, f.name, g.rate)
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		v, base := quantile(busy, q.of), quantile(quiet, q.of)
		g.add(growthRow{Measurement: measureFloods, Figure: "published to response seen, " + q.name, Unit: "ms", Load: on, Value: v}.
			comparedWith("none", base).aim("≤ 2 ×", v <= 2*base))
	}
	return nil
}

func (g *growth) warmTime() time.Duration { return max(g.paced/5, 100*time.Millisecond) }

// unknownTurn is a turn of a workflow that no worker has.
func unknownTurn(l *lab, n int) (*nats.Msg, error) {
	body, err := events.EncodeTurn(&events.StructuredOutputReady{
		TurnID: otherTurn(n), Workflow: otherTenantFlow, Agent: "A", Model: "M", Data: map[string]any{}, AutoToolMode: true,
	}, time.Now())
	return &nats.Msg{Subject: l.ids.In(subjects.DefaultPool, events.KindStructuredOutputReady, otherTenant, otherTenantFlow, otherTenant), Data: body}, err
}

// lateAnswer is an answer to a question of that workflow.
func lateAnswer(l *lab, n int) (*nats.Msg, error) {
	id := otherTurn(n)
	body, err := events.EncodeAnswer(&events.ToolCallResponse{
		TurnID: events.TurnID{App: id.App, Chat: id.Chat}, Workflow: otherTenantFlow, ToolCallID: events.QuestionID(callOf(id), "1"), Value: true,
	}, time.Now())
	return &nats.Msg{Subject: l.ids.In(subjects.DefaultPool, events.KindToolCallResponse, otherTenant, otherTenantFlow, otherTenant), Data: body}, err
}

func otherTurn(n int) events.TurnID {
	return events.TurnID{App: otherTenant, Chat: otherTenant, Turn: "waiting-" + strconv.Itoa(n)}
}

func callOf(id events.TurnID) string { return events.CallID(id, subjects.TurnToken(id.Run, id.Turn)) }

// retire stores turns that are parked with an open question, as a worker has left them whose workflow
// no worker has any more.
func (g *growth) retire(ctx context.Context, l *lab) error {
	store, err := kvstore.Open(l.nc, l.ids)
	if err != nil {
		return err
	}
	defer store.Close()
	journal := idempotency.New(store, "retired", idempotency.Options{})
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(64)
	for n := range g.floodCount {
		asking.Go(func() error { return l.park(ctx, journal, otherTurn(n), uint64(n+1)) })
	}
	if err := asking.Wait(); err != nil {
		return fmt.Errorf("store the open questions: %w", err)
	}
	return nil
}

// park stores one turn that waits for a person.
func (l *lab) park(ctx context.Context, journal *idempotency.Journal, id events.TurnID, seq uint64) error {
	key, component := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn), "Approval"
	call := &events.ToolCall{
		ID: callOf(id), AppID: id.App, ChatID: id.Chat, Turn: id.Turn, ToolCallID: callOf(id), CallID: callOf(id), Corr: callOf(id), ToolName: "ask",
		WorkflowName: otherTenantFlow, InteractionType: events.InteractionAutoTool, Payload: events.ToolCallPayload{ToolArgs: map[string]any{}},
	}
	claim, err := events.Encode(events.KindToolCall, call, time.Now())
	if err != nil {
		return err
	}
	d, err := journal.Claim(ctx, idempotency.Claim{
		Key: key, Event: claim, Effect: "replay", Lease: idempotency.Lease{Stream: l.ids.InStream(), Seq: seq + 1<<40, Delivery: 1},
	})
	if err != nil {
		return err
	}
	ask := *call
	ask.ToolCallID, ask.ComponentType, ask.AwaitingResponse, ask.InteractionType = events.QuestionID(callOf(id), "1"), &component, true, events.InteractionUITool
	ask.ID, ask.CallID, ask.Corr, ask.Payload = ask.ToolCallID, ask.ToolCallID, ask.ToolCallID, events.ToolCallPayload{Shown: map[string]any{}}
	ask.Answer = &events.AnswerTo{Subject: l.ids.In(subjects.DefaultPool, events.KindToolCallResponse, id.App, otherTenantFlow, id.Chat)}
	event, err := events.Encode(events.KindToolCall, &ask, time.Now())
	if err != nil {
		return err
	}
	if _, err := journal.Ask(ctx, d.Hold, idempotency.Question{ID: "1", Digest: "d", Event: event}); err != nil {
		return err
	}
	hold := d.Hold
	_, err = journal.Park(ctx, &hold, idempotency.AskedBy(hold.Key, "1"), json.RawMessage(`{}`))
	return err
}

// messages returns messages that wait. They are made before anything is measured.
func (f flood) messages(l *lab, from, count int) (all []*nats.Msg, err error) {
	all = make([]*nats.Msg, count)
	for n := range all {
		if all[n], err = f.message(l, from+n); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// flood publishes messages at a fixed rate.
func (l *lab) flood(ctx context.Context, messages []*nats.Msg, rate int) error {
	js, err := jetstream.New(l.nc) // its confirmations are not confirmations of the turns
	if err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	_, err = (&publisher{js: js, space: l.ids}).send(ctx, messages, steady(ctx, rate))
	return err
}

// ebb waits until no message waits any more, neither in the stream nor deferred.
func (l *lab) ebb(ctx context.Context) error {
	timers, err := l.js.Stream(ctx, l.ids.TimersStream())
	if err != nil {
		return fmt.Errorf("find the timers: %w", err)
	}
	for {
		inbound, err := l.inbound.Info(ctx)
		if err != nil {
			return fmt.Errorf("read the inbound stream: %w", err)
		}
		deferred, err := timers.Info(ctx)
		if err != nil {
			return fmt.Errorf("read the timers: %w", err)
		}
		if inbound.State.Msgs == 0 && deferred.State.Msgs <= 1 { // the next sweep
			return nil
		}
		if err := await(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

// probe publishes turns and sees their responses, whatever else the journal stores.
type probe struct {
	lab       *lab
	publisher *publisher

	mu   sync.Mutex
	seen map[string]time.Time // live copy of the response, by subject
	more chan struct{}
}

func newProbe(l *lab) (*probe, error) {
	flat, err := loadPayload("flat")
	if err != nil {
		return nil, err
	}
	p := &probe{lab: l, publisher: &publisher{js: l.js, space: l.ids, payload: flat}, seen: map[string]time.Time{}, more: make(chan struct{}, 1)}
	if _, err = l.nc.Subscribe(l.ids.EventsPrefix()+"."+subjects.Token(app)+".*.*.*."+events.KindToolResponse, func(m *nats.Msg) {
		now := time.Now()
		p.mu.Lock()
		p.seen[m.Subject] = now
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
	}); err != nil {
		return nil, fmt.Errorf("subscribe to responses: %w", err)
	}
	return p, nil
}

// pace publishes the next turns at a fixed rate and returns how long each took until its response was
// seen, in ms.
func (p *probe) pace(ctx context.Context, rate int, d time.Duration) ([]float64, error) {
	turns, from := max(int(float64(rate)*d.Seconds()), 1), p.lab.published
	p.lab.published += turns
	sent, err := p.publisher.publish(ctx, request{From: from, Count: turns}, steady(ctx, rate))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	took := make([]float64, 0, turns)
	for n := range turns {
		at, err := p.response(ctx, from+n)
		if err != nil {
			return nil, err
		}
		took = append(took, at.Sub(time.Unix(0, sent[n])).Seconds()*1000)
	}
	return took, nil
}

// response waits for the response of a turn.
func (p *probe) response(ctx context.Context, turn int) (time.Time, error) {
	subject := p.lab.ids.EventOfTurn(turnKey(turn), events.KindToolResponse)
	for {
		p.mu.Lock()
		at, ok := p.seen[subject]
		delete(p.seen, subject)
		p.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-p.more:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("turn %d has no response: %w", turn, ctx.Err())
		}
	}
}
