package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// journal is the journal as the gateway reads it. One that was deleted and created again is another journal: nothing that
// was remembered of the old one holds for it.
type journal struct {
	store  *kvstore.Store
	reader *query.Reader
	budget *searchbudget.Budget // of reader
	// histories has a connection that nothing else waits for: the server handles the requests of a connection one by one.
	histories *query.Reader

	feeds  *feed.Feeds
	owned  *recent.Set[ownedChat] // chats whose owner is known
	owners ownerReads             // that run now
	loaded *loadedChats           // for runs of AG-UI
}

func (g *Gateway) openJournal(ctx context.Context) (*journal, error) {
	nc, reads := g.o.NATS, g.o.Reads
	j := &journal{store: kvstore.Read(nc, g.space), owned: recent.New[ownedChat](ownedChats, ownedFor), loaded: newLoadedChats()}
	ofReader, ofHistories := reads, nc // the pings of searches
	if reads == nc {                   // they would wait for histories
		ofReader, ofHistories = nil, nil
	}
	j.budget = searchbudget.New(nc, ofReader)
	j.reader = query.New(nc, g.space, j.store, j.budget)
	j.histories = query.New(reads, g.space, kvstore.Read(reads, g.space), searchbudget.New(reads, ofHistories))
	j.histories.CountHistories(g.metrics.history)
	var err error
	if j.feeds, err = feed.Open(ctx, nc, g.space, j.histories, feed.Options{Logger: g.o.Logger, Damaged: g.damaged}); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return j, nil
}

// reopenTime bounds the time in which a journal that was created again is opened.
const reopenTime = 2 * time.Second

// journal returns the journal, opened again if it is another one. As long as that fails it is the old one, whose followers
// end with [feed.ErrJournalReplaced].
func (g *Gateway) journal(ctx context.Context) *journal {
	j := g.current.Load()
	if !errors.Is(j.feeds.Ready(), feed.ErrJournalReplaced) || !g.reopening.TryLock() {
		return j
	}
	defer g.reopening.Unlock()
	if now := g.current.Load(); now != j {
		return now
	}
	next, err := g.openJournal(ctx)
	if err != nil {
		g.lines.Log(ctx, g.o.Logger, time.Now(), "gateway journal", "", 1, slog.LevelWarn, "the journal was replaced and cannot be opened", "err", events.LogText(err))
		return j
	}
	g.o.Logger.Warn("the journal was replaced: it is opened again, and clients begin from its start")
	g.current.Store(next)
	j.feeds.Close()
	return next
}

// reportedRecords bounds the damaged records whose lines are remembered.
const reportedRecords = 1_000

// damaged reports a stored event that is left out since it cannot be read: clients see a gap between two sequences, as where a text
// is hidden. It is logged once.
func (g *Gateway) damaged(key string, sequence uint64) {
	if sequence == 0 {
		return // it is not stored
	}
	g.metrics.damaged.Inc()
	if !g.reported.Add(sequence, time.Now()) {
		g.o.Logger.Error("a stored event is damaged: it is left out of what clients get", "sequence", sequence, "key", events.Clip(key))
	}
}
