package feed_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/oneturntest"
)

const (
	lastTurn = "the last one"
	writers  = 4
)

// audience are followers of the chats of a journal, which attach while it is written.
type audience struct {
	ctx     context.Context //nolint:containedctx // of the test
	feeds   *feed.Feeds
	chats   []string
	written chan struct{} // closed when everything is

	mu      sync.Mutex
	all     []*follower
	reading sync.WaitGroup
}

// follower is one of them.
type follower struct {
	received

	chat  string
	after uint64
	most  int // items that it receives before everything is written
}

// attach adds a follower of any chat, with any cursor below a sequence. Half of them are slow.
func (c *audience) attach(below int, random *rand.Rand) {
	w := &follower{chat: c.chats[random.IntN(len(c.chats))], most: math.MaxInt}
	if random.IntN(3) > 0 {
		w.after = uint64(random.IntN(below + 1))
	}
	if random.IntN(2) == 0 {
		w.most = random.IntN(10)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, w)
	from := c.feeds.Follow("app", w.chat, w.after)
	c.reading.Go(func() {
		defer from.Close()
		w.run(c.ctx, from, c.written)
	})
}

func (w *follower) run(ctx context.Context, from *feed.Follower, written <-chan struct{}) {
	for n := 0; n < w.most && w.most < math.MaxInt; n++ {
		item, err := from.Next(ctx)
		if err == nil {
			err = w.add(item)
		}
		if w.err = err; err != nil {
			return
		}
		if item.Boundary != nil {
			break
		}
	}
	if w.most < math.MaxInt {
		<-written
	}
	w.until(ctx, from, lastTurn)
}

// fill writes records of any kind, and attaches followers meanwhile.
func (c *audience) fill(j *journal, n, records int) {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range records {
		turn := strconv.Itoa(n) + "-" + strconv.Itoa(i)
		switch chat := c.chats[random.IntN(len(c.chats))]; random.IntN(5) {
		case 0:
			j.private("app", chat, turn)
		case 1:
			j.write("another", chat, turn)
		default:
			j.write("app", chat, turn)
		}
		if i%7 == 0 {
			c.attach(i, random)
		}
	}
}

// requireComplete writes to some chats, disturbs the server meanwhile, and attaches followers at any moment: each has to receive the
// public records of its chat after its cursor, in order and once.
func requireComplete(t *testing.T, s *oneturntest.Server, records int, disturb func(j *journal)) {
	t.Helper()
	j := newJournal(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &audience{ctx: ctx, chats: []string{"a", "b", "c d"}, written: make(chan struct{})}
	c.feeds = j.open(s, feed.Options{QueueBytes: 4 << 10, PageRecords: 5, Reads: 2})
	var writing sync.WaitGroup
	for n := range writers {
		writing.Go(func() { c.fill(j, n, records) })
	}
	disturb(j)
	writing.Wait()
	want := map[string][]uint64{}
	for _, chat := range c.chats {
		j.write("app", chat, lastTurn)
		want[chat] = j.sequences("app", chat)
	}
	close(c.written)
	defer time.AfterFunc(30*time.Second, cancel).Stop() // one that misses its last record would wait for ever
	c.reading.Wait()
	for _, w := range c.all {
		name := fmt.Sprintf("chat %s after %d, %d items before the end", w.chat, w.after, w.most)
		require.NoError(t, w.err, name)
		at, _ := slices.BinarySearch(want[w.chat], w.after+1)
		require.Equal(t, want[w.chat][at:], w.sequences, name)
	}
}

func TestEveryFollowerReceivesEachRecordOnceInOrder(t *testing.T) {
	t.Parallel()
	requireComplete(t, oneturntest.NewServer(t, oneturntest.Memory), 150, func(*journal) {})
}

func TestFollowersMissNothingWhenTheConsumerIsLost(t *testing.T) {
	t.Parallel()
	requireComplete(t, oneturntest.NewServer(t, oneturntest.Memory), 300, func(j *journal) {
		stream, err := j.js.Stream(t.Context(), j.space.TurnsStream())
		require.NoError(t, err)
		for deleted := 0; deleted < 5; {
			for name := range stream.ConsumerNames(t.Context()).Name() {
				if stream.DeleteConsumer(t.Context(), name) == nil {
					deleted++
				}
			}
		}
	})
}

func TestFollowersMissNothingWhenTheServerRestarts(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	requireComplete(t, s, 150, func(*journal) {
		for range 2 {
			require.NoError(t, s.Reopen())
		}
	})
}
