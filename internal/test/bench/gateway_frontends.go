package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// The role frontends is the clients of a gateway and the publisher of the events they get, in one process, so that the publisher
// knows what has arrived.

// frontendUser is the user that all chats belong to.
const frontendUser = "ada"

// frontendRequest is what the role is asked for.
type frontendRequest struct {
	Address  string `json:"address"` // of the gateway, or of the baseline
	Endpoint string `json:"endpoint"`
	Chat     string `json:"chat"`    // the beginning of the name
	Chats    int    `json:"chats"`   // over which the clients are spread, 1 if they share one
	Tenants  int    `json:"tenants"` // likewise
	Clients  int    `json:"clients"`
	Events   int    `json:"events"` // to publish
	Window   int    `json:"window"` // events that some client lacks; the publisher waits
	Rate     int    `json:"rate"`   // events a second; 0 for as fast as the window lets
}

// frontendReply is what was measured.
type frontendReply struct {
	Took    time.Duration `json:"took"`    // from the first event published until all clients had all
	Latency [3]float64    `json:"latency"` // p50, p99 and the longest, in ms
	Whole   [3]float64    `json:"whole"`   // the same for the whole history
}

// frontends is the role.
type frontends struct {
	process

	nc    *nats.Conn
	js    jetstream.JetStream
	space subjects.Space

	clients []*client
	wg      sync.WaitGroup
	closing atomic.Bool
	failed  chan error // one that ended a client

	base    int            // number of the first event of this run
	left    []atomic.Int32 // clients that lack an event of this run
	arrived chan struct{}  // holds one for each event that all clients have
	paced   bool
}

func startFrontends(s spec, dial dialer) (*frontends, error) {
	space, err := subjects.New(subjects.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	nc, err := dial()
	if err != nil {
		return nil, fmt.Errorf("connect the frontends: %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect the frontends: %w", err)
	}
	return &frontends{process: process{spec: s}, nc: nc, js: js, space: space, failed: make(chan error, 1)}, nil
}

func (f *frontends) do(ctx context.Context, r request) (reply, error) {
	var measured frontendReply
	var err error
	switch r.Do {
	case "history":
		err = f.history(ctx, r.Frontends)
	case "open":
		err = f.open(ctx, r.Frontends)
	case "first":
		measured, err = f.first(ctx, r.Frontends)
	case "deliver":
		measured, err = f.deliver(ctx, r.Frontends)
	case "leave":
		f.leave()
	default:
		return f.process.do(r)
	}
	return reply{Frontends: &measured}, err
}

func (f *frontends) close() error {
	f.leave()
	f.nc.Close()
	return nil
}

// history stores the turn that gives each chat its owner, and then texts.
func (f *frontends) history(ctx context.Context, r *frontendRequest) error {
	for n := range r.Chats {
		id := events.TurnID{App: tenantOf(n, r.Tenants), Chat: chatOf(r.Chat, n, r.Chats), Turn: "turn"}
		call, err := events.Encode(events.KindToolCall, &events.ToolCall{
			ID: id.Turn, AppID: id.App, ChatID: id.Chat, UserID: frontendUser, Turn: id.Turn, Agent: "agent", ToolName: "tool", ToolCallID: id.Turn,
			CallID: id.Turn, Corr: id.Turn, InteractionType: events.InteractionAutoTool, WorkflowName: workflow,
		}, time.Now())
		if err != nil {
			return err
		}
		if err := f.store(subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn).Public(events.KindToolCall), call); err != nil {
			return err
		}
		for i := range r.Events {
			if err := f.publish(id.App, id.Chat, "old-"+strconv.Itoa(i), mark(i, 0)); err != nil {
				return err
			}
		}
	}
	return f.published(ctx)
}

// publish stores a small event: a text of an agent.
func (f *frontends) publish(tenant, chat, id, mark string) error {
	event, err := events.Encode(events.KindText, &events.Text{
		Kind: events.KindText, ID: id, MessageID: id, AppID: tenant, ChatID: chat, Agent: "agent", WorkflowName: workflow,
		Content: mark + " The parcel has left the depot.", IsVisual: true,
	}, time.Now())
	if err != nil {
		return err
	}
	return f.store(subjects.MessageKey(tenant, chat, "", id).Public(events.RecordText), event)
}

// store publishes a record as a worker writes it; published waits until it is stored.
func (f *frontends) store(key string, event []byte) error {
	meta := idempotency.Meta{Owner: "bench-worker-0", Nonce: idempotency.NewNonce(), Epoch: 1}
	m := &nats.Msg{Subject: f.space.JournalSubject(key), Data: event, Header: nats.Header{}}
	meta.Headers(func(_ int, name, value string) {
		if value != "" {
			m.Header[name] = []string{value}
		}
	})
	if _, err := f.js.PublishMsgAsync(m, jetstream.WithStallWait(publishTimeout)); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

func (f *frontends) published(ctx context.Context) error {
	select {
	case <-f.js.PublishAsyncComplete():
		return nil
	case <-time.After(publishTimeout):
		return errors.New("publish: no confirmation in a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connectAtOnce is how many clients connect at the same time.
const connectAtOnce = 16

// open connects clients, each until it is live, and keeps them.
func (f *frontends) open(ctx context.Context, r *frontendRequest) error {
	clients := make([]*client, r.Clients)
	var connecting errgroup.Group
	connecting.SetLimit(connectAtOnce)
	for n := range clients {
		connecting.Go(func() error {
			c, err := f.dial(ctx, n, r)
			if err != nil {
				return err
			}
			clients[n] = c
			return c.read(func() bool { return c.ready })
		})
	}
	err := connecting.Wait()
	f.clients = slices.DeleteFunc(clients, func(c *client) bool { return c == nil })
	f.base = 0
	for _, c := range f.clients {
		err = errors.Join(err, c.conn.SetDeadline(time.Time{}))
		f.wg.Go(func() { f.follow(c) })
	}
	return err
}

// follow reads what a client gets until it leaves.
func (f *frontends) follow(c *client) {
	err := c.read(func() bool { return false })
	if !f.closing.Load() {
		select {
		case f.failed <- err:
		default:
		}
	}
}

func (f *frontends) leave() {
	f.closing.Store(true)
	for _, c := range f.clients {
		_ = c.conn.Close() // the server sees that it is gone
	}
	f.wg.Wait()
	f.clients = nil
	f.closing.Store(false)
}

// took notes that a client has an event.
func (f *frontends) took(c *client, n int, sent int64) error {
	if n -= f.base; n < 0 || n >= len(f.left) {
		return fmt.Errorf("event %d was not published in this run", n)
	}
	if f.paced {
		c.latency = append(c.latency, time.Duration(time.Now().UnixNano()-sent))
	}
	if f.left[n].Add(-1) == 0 {
		f.arrived <- struct{}{}
	}
	return nil
}

// deliver publishes events to the first chat and waits until all clients have all of them.
func (f *frontends) deliver(ctx context.Context, r *frontendRequest) (frontendReply, error) {
	f.left, f.arrived, f.paced = make([]atomic.Int32, r.Events), make(chan struct{}, r.Events), r.Rate > 0
	for i := range f.left {
		f.left[i].Store(int32(len(f.clients)))
	}
	begin, arrived := time.Now(), 0
	for n := range r.Events {
		if r.Rate > 0 {
			if err := await(ctx, begin.Add(time.Duration(n)*time.Second/time.Duration(r.Rate))); err != nil {
				return frontendReply{}, err
			}
		} else if err := f.await(ctx, &arrived, n-r.Window+1); err != nil {
			return frontendReply{}, err
		}
		number := f.base + n
		if err := f.publish(tenantOf(0, r.Tenants), chatOf(r.Chat, 0, r.Chats), "text-"+strconv.Itoa(number), mark(number, time.Now().UnixNano())); err != nil {
			return frontendReply{}, err
		}
	}
	if err := f.await(ctx, &arrived, r.Events); err != nil {
		return frontendReply{}, err
	}
	took := time.Since(begin)
	f.base += r.Events
	var all []float64
	for _, c := range f.clients {
		for _, d := range c.latency {
			all = append(all, milliseconds(d))
		}
		c.latency = nil
	}
	return frontendReply{Took: took, Latency: latencies(all)}, f.published(ctx)
}

// await waits until so many events have arrived at all clients.
func (f *frontends) await(ctx context.Context, arrived *int, want int) error {
	for *arrived < want {
		select {
		case <-f.arrived:
			*arrived++
		case err := <-f.failed:
			return err
		case <-time.After(stuckAfter):
			return fmt.Errorf("%d of %d events arrived at all clients, and nothing more for %s", *arrived, want, stuckAfter)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// first connects one client after the other to chats with a history, and measures the time until the first event of each.
func (f *frontends) first(ctx context.Context, r *frontendRequest) (frontendReply, error) {
	begin := time.Now()
	var took, whole []float64
	for n := range r.Clients {
		start := time.Now()
		c, err := f.dial(ctx, n, r)
		if err != nil {
			return frontendReply{}, err
		}
		_, err = c.in.Peek(1)
		took = append(took, milliseconds(time.Since(start)))
		if err == nil {
			err = c.read(func() bool { return c.ready })
		}
		whole = append(whole, milliseconds(time.Since(start)))
		if err := errors.Join(err, c.conn.Close()); err != nil {
			return frontendReply{}, fmt.Errorf("client %d: %w", n, err)
		}
	}
	return frontendReply{Took: time.Since(begin), Latency: latencies(took), Whole: latencies(whole)}, nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// latencies returns the median, the p99 and the longest.
func latencies(values []float64) (found [3]float64) {
	if len(values) == 0 {
		return found
	}
	slices.Sort(values)
	return [3]float64{quantile(values, 0.5), quantile(values, 0.99), values[len(values)-1]}
}
