package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// Readers open old chats while turns are claimed, in three ways: page by page through the request API, as followers of one feed, and as
// followers of a feed that reads from a mirror of the journal. Nothing is cached when each begins.

// way is one way to open chats.
type way struct {
	name   string
	mirror bool
	open   func(ctx context.Context, r *reading) (opener, func(), error)
}

// opener opens a chat and returns how many records it has, and when the first was there.
type opener func(ctx context.Context, chat string) (records int, first time.Time, err error)

// histories measures how long it takes to open a chat that was not read for long, and what claims have to wait meanwhile.
func (g *growth) histories(ctx context.Context) error {
	most := slices.Max(g.keep)
	l, err := g.retain(ctx, most)
	if err != nil {
		return err
	}
	chats := retained{g.chatRecords / 2}.complete(most)
	if chats < g.readerCount {
		return fmt.Errorf("%d retained turns have %d chats of %d records, too few for %d readers", most, chats, g.chatRecords, g.readerCount)
	}
	for _, w := range []way{
		{"request API", false, overAPI}, {"feed", false, overFeed}, {"feed, read mirror", true, overFeed},
	} {
		if w.mirror {
			if err := l.mirror(ctx); err != nil {
				return err
			}
			g.sayf("the journal is mirrored")
		}
		if err := g.openBy(ctx, l, w, chats, most); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return l.js.DeleteStream(ctx, l.ids.TurnsMirror()) //nolint:wrapcheck // names the request
}

// openBy measures one way.
func (g *growth) openBy(ctx context.Context, l *lab, w way, chats, most int) error {
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
	r := &reading{lab: l, records: g.chatRecords, chats: chats}
	open, end, err := w.open(ctx, r)
	if err != nil {
		return err
	}
	o := &openings{reading: r, open: open}
	stop := o.start(ctx, g.readerCount)
	busy, err := l.pace(ctx, g.rate, g.paced)
	errReading := stop()
	end()
	if err = errors.Join(err, errReading); err != nil {
		return err
	}
	on := fmt.Sprintf("%s, %d readers, %d turns", w.name, g.readerCount, most)
	row := func(figure string, value float64) growthRow {
		return growthRow{Measurement: "histories", Figure: figure, Unit: "ms", Load: on, Value: value}
	}
	slices.Sort(r.took)
	slices.Sort(o.first)
	p50, p99 := quantile(r.took, 0.5), quantile(r.took, 0.99)
	claims, before := quantile(busy.claims, 0.99), quantile(quiet.claims, 0.99)
	g.add(
		row("chat opened, p50", p50).aim("≤ 150 ms", p50 <= 150),
		row("chat opened, p99", p99).aim("≤ 500 ms", p99 <= 500),
		row("first event, p50", quantile(o.first, 0.5)),
		row("published to claim stored, p50", quantile(busy.claims, 0.5)).comparedWith("no readers", quantile(quiet.claims, 0.5)),
		row("published to claim stored, p99", claims).comparedWith("no readers", before).aim("≤ 2 ×", claims <= 2*before),
		row("published to claim stored, max", quantile(busy.claims, 1)).comparedWith("no readers", quantile(quiet.claims, 1)),
		growthRow{Measurement: "histories", Figure: "chats opened", Unit: "/s", Load: on, Value: float64(len(r.took)) / r.lasted.Seconds()},
	)
	return l.stop(worker)
}

// mirror makes the read mirror of the journal, and waits until it has everything.
func (l *lab) mirror(ctx context.Context) error {
	mirror, err := l.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: l.ids.TurnsMirror(), Mirror: &jetstream.StreamSource{Name: l.ids.TurnsStream()}, MaxMsgsPerSubject: 1,
		MaxAge: 30 * 24 * time.Hour, AllowDirect: true, MirrorDirect: true,
	})
	if err != nil {
		return fmt.Errorf("mirror the journal: %w", err)
	}
	for {
		last, err := l.lastRecord(ctx)
		if err != nil {
			return err
		}
		info, err := mirror.Info(ctx)
		if err != nil {
			return fmt.Errorf("mirror the journal: %w", err)
		}
		if info.State.LastSeq >= last {
			return nil
		}
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// overAPI opens chats by requests to the worker. Each reader has a connection.
func overAPI(_ context.Context, r *reading) (opener, func(), error) {
	return func(ctx context.Context, chat string) (found int, first time.Time, err error) {
		nc, err := nats.Connect(r.lab.base.URL)
		if err != nil {
			return 0, first, fmt.Errorf("connect a reader: %w", err)
		}
		defer nc.Close()
		for from := uint64(1); from > 0; {
			page, err := r.page(ctx, nc, chat, from)
			if err != nil && strings.Contains(err.Error(), "busy") { // as the reply asks clients to
				if err := pause.For(ctx, time.Second); err != nil {
					return found, first, err
				}
				continue
			}
			if err != nil {
				return found, first, err
			}
			if found == 0 {
				first = time.Now()
			}
			found += len(page.Records)
			from = page.Next
		}
		return found, first, nil
	}, func() {}, nil
}

// overFeed opens chats as followers of one feed, as a gateway does.
func overFeed(ctx context.Context, r *reading) (opener, func(), error) {
	nc, err := nats.Connect(r.lab.base.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("connect the feed: %w", err)
	}
	reads, err := nats.Connect(r.lab.base.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("connect the reader of the feed: %w", err)
	}
	reader := query.New(reads, r.lab.ids, kvstore.Read(reads, r.lab.ids), searchbudget.New(reads, r.lab.nc))
	f, err := feed.Open(ctx, nc, r.lab.ids, reader, feed.Options{})
	if err != nil {
		return nil, nil, err
	}
	end := func() {
		f.Close()
		nc.Close()
		reads.Close()
	}
	return func(ctx context.Context, chat string) (found int, first time.Time, err error) {
		w := f.Follow(app, chat, 0)
		defer w.Close()
		for {
			item, err := w.Next(ctx)
			if err != nil || item.Boundary != nil {
				return found, first, err
			}
			if found++; found == 1 {
				first = time.Now()
			}
		}
	}, end, nil
}

// openings is a reading with a way to open chats.
type openings struct {
	*reading

	open  opener
	first []float64 // until the first event of each chat, in ms
}

// start starts readers; the returned function ends them when each has opened the chat that it has begun with.
func (o *openings) start(ctx context.Context, count int) (stop func() error) {
	begin := time.Now()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range count {
		wg.Go(func() {
			for o.more(done) {
				if err := o.one(ctx); err != nil {
					o.fail(err)
				}
			}
		})
	}
	return func() error {
		close(done)
		wg.Wait()
		o.lasted = time.Since(begin)
		return o.err
	}
}

func (o *openings) one(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	chat, begin := o.chat(), time.Now()
	found, first, err := o.open(ctx, chat)
	if err != nil {
		return fmt.Errorf("chat %s: %w", chat, err)
	}
	if found != o.records {
		return fmt.Errorf("chat %s has %d records, want %d", chat, found, o.records)
	}
	took := time.Since(begin).Seconds() * 1000
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took, o.first = append(o.took, took), append(o.first, first.Sub(begin).Seconds()*1000)
	return nil
}
