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

	"github.com/oneturn/oneturn/api"
)

// Readers open old chats through the request API, page by page, while turns are claimed: what a claim waits for when
// the server reads old blocks of the journal.

// readers measures what claims have to wait while readers open chats that were not read for long, in the journal with the most retained turns.
func (g *growth) readers(ctx context.Context) error {
	most := slices.Max(g.keep)
	l, err := g.retain(ctx, most)
	if err != nil {
		return err
	}
	chats := retained{g.chatRecords / 2}.complete(most)
	if chats < g.readerCount {
		return fmt.Errorf("%d retained turns have %d chats of %d records, too few for %d readers", most, chats, g.chatRecords, g.readerCount)
	}
	if _, err := l.restart(ctx, false); err != nil { // nothing is cached
		return err
	}
	worker, _, err := l.startWorker(ctx, product)
	if err != nil {
		return err
	}
	if err := l.publish(ctx, g.warm, true); err != nil {
		return err
	}
	quiet, err := l.pace(ctx, g.rate, g.paced)
	if err != nil {
		return err
	}
	r := reading{lab: l, records: g.chatRecords, chats: chats}
	stop := r.start(ctx, g.readerCount)
	busy, err := l.pace(ctx, g.rate, g.paced)
	if errReading := stop(); err == nil {
		err = errReading
	}
	if err != nil {
		return err
	}
	on := fmt.Sprintf("%d readers, %d turns", g.readerCount, most)
	row := func(figure string, of, base float64) growthRow {
		return growthRow{Measurement: "readers", Figure: figure, Unit: "ms", Load: on, Value: of}.comparedWith("no readers", base)
	}
	slices.Sort(r.took)
	g.add(
		row("published to claim stored, p99", quantile(busy.claims, 0.99), quantile(quiet.claims, 0.99)),
		row("published to claim stored, max", quantile(busy.claims, 1), quantile(quiet.claims, 1)).aim("≤ 50 ms", quantile(busy.claims, 1) <= 50),
		row("published to response stored, p99", quantile(busy.ends, 0.99), quantile(quiet.ends, 0.99)),
		row("published to response stored, max", quantile(busy.ends, 1), quantile(quiet.ends, 1)),
		growthRow{Measurement: "readers", Figure: "chat opened, p50", Unit: "ms", Load: on, Value: quantile(r.took, 0.5)},
		growthRow{Measurement: "readers", Figure: "chat opened, max", Unit: "ms", Load: on, Value: quantile(r.took, 1)},
		growthRow{Measurement: "readers", Figure: "chats opened", Unit: "/s", Load: on, Value: float64(len(r.took)) / r.lasted.Seconds()},
	)
	return l.stop(worker)
}

// reading is what readers do, and how long it took them.
type reading struct {
	lab            *lab
	records, chats int

	mu     sync.Mutex
	next   int
	took   []float64 // of each chat, in ms
	lasted time.Duration
	err    error
}

// start starts readers; the returned function ends them when each has opened the chat that it
// has begun with.
func (r *reading) start(ctx context.Context, count int) (stop func() error) {
	begin := time.Now()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range count {
		wg.Go(func() {
			for r.more(done) {
				if err := r.open(ctx); err != nil {
					r.fail(err)
				}
			}
		})
	}
	return func() error {
		close(done)
		wg.Wait()
		r.lasted = time.Since(begin)
		return r.err
	}
}

func (r *reading) more(done <-chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-done:
		return false
	default:
		return r.err == nil
	}
}

func (r *reading) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

// chat is the next one to open, far from the last one.
func (r *reading) chat() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return retained{}.chat(r.next * far % r.chats)
}

// open opens one chat: all pages of its history.
func (r *reading) open(ctx context.Context) error {
	nc, err := nats.Connect(r.lab.base.URL)
	if err != nil {
		return fmt.Errorf("connect a reader: %w", err)
	}
	defer nc.Close()
	chat, begin, found := r.chat(), time.Now(), 0
	for from := uint64(1); from > 0; {
		page, err := r.page(ctx, nc, chat, from)
		if err != nil {
			return fmt.Errorf("chat %s from %d: %w", chat, from, err)
		}
		found += len(page.Records)
		from = page.Next
	}
	if found != r.records {
		return fmt.Errorf("chat %s has %d records, want %d", chat, found, r.records)
	}
	took := time.Since(begin).Seconds() * 1000
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took)
	return nil
}

func (r *reading) page(ctx context.Context, nc *nats.Conn, chat string, from uint64) (*api.Page, error) {
	body, err := json.Marshal(api.HistoryRequest{Chat: chat, From: from})
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, r.lab.ids.API(app, api.VerbHistory), body)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if text := m.Header.Get("Nats-Service-Error"); text != "" {
		return nil, errors.New(strconv.Quote(text))
	}
	page := &api.Page{}
	if err := json.Unmarshal(m.Data, page); err != nil {
		return nil, fmt.Errorf("decode a page: %w", err)
	}
	return page, nil
}
