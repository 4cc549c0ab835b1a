package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// chatsAtOnce is how many chats the retained turns come from at any time: the records of a
// chat lie that far apart.
const chatsAtOnce = 64

// writers is how many records are written at the same time.
const writers = 256

// retained are turns that have ended and stay in the journal. Their ids are not ids of published turns.
type retained struct{ turnsAChat int }

func (r retained) chat(n int) string { return "kept-" + strconv.Itoa(n) }

// complete is how many chats have all their turns once so many are there.
func (r retained) complete(turns int) int { return turns / (chatsAtOnce * r.turnsAChat) * chatsAtOnce }

func (r retained) id(i int) events.TurnID {
	round := i / (chatsAtOnce * r.turnsAChat)
	return events.TurnID{App: app, Chat: r.chat(round*chatsAtOnce + i%chatsAtOnce), Turn: "kept-" + strconv.Itoa(i)}
}

// retain stores the two records of each of some ended turns, as a worker writes them.
func (p *publisher) retain(ctx context.Context, r request) error {
	return p.store(ctx, r.Count, func(ctx context.Context, store idempotency.Store, i int) error {
		return p.retainOne(ctx, store, retained{r.TurnsAChat}.id(r.From+i), r.From+i)
	})
}

// store calls one for each number below count, several at a time, and stops at the first error.
func (p *publisher) store(ctx context.Context, count int, one func(ctx context.Context, store idempotency.Store, i int) error) error {
	store, err := kvstore.Open(p.nc, p.space)
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				if err := one(ctx, store, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (p *publisher) retainOne(ctx context.Context, store idempotency.Store, id events.TurnID, n int) error {
	call, response, err := p.payload.outboundOf(id, time.Now())
	if err != nil {
		return err
	}
	key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
	// As long as what a worker writes; nothing reads it.
	meta := idempotency.Meta{
		Owner: "bench-worker-0", Nonce: idempotency.NewNonce(), Epoch: 1, Fingerprint: fmt.Sprintf("%064x", n),
		Lease:  idempotency.Lease{Stream: p.space.InStream(), Seq: uint64(n) + 1, Delivery: 1},
		Effect: "unsafe", Digest: fmt.Sprintf("%064x", 1),
	}
	if _, err := store.Create(ctx, idempotency.Record{Key: key.Public(events.KindToolCall), Meta: meta, Data: call}); err != nil {
		return fmt.Errorf("retain turn %d: %w", n, err)
	}
	meta.Lease, meta.Effect, meta.Digest = idempotency.Lease{}, "", ""
	if _, err := store.Create(ctx, idempotency.Record{Key: key.Public(events.KindToolResponse), Meta: meta, Data: response}); err != nil {
		return fmt.Errorf("retain turn %d: %w", n, err)
	}
	return nil
}
