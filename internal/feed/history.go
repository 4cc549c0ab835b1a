package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// Pauses between reads that fail.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// readTimeout bounds the read of one page. It may be shared, so it does not end with the first follower that asked for it.
const readTimeout = 30 * time.Second

// check finds out whether the cursor is beyond the end of the journal. Another process may have routed records that this one has not,
// so the leader decides.
func (w *Follower) check(ctx context.Context) error {
	if w.through <= w.target {
		w.checked = true
		return nil
	}
	return w.retry(ctx, func(ctx context.Context) error {
		last, err := w.feeds.lastSequence(ctx)
		if err != nil {
			return err
		}
		w.checked = true
		if w.through > last {
			w.through, w.last, w.reset = 0, 0, true
		}
		return nil
	})
}

// IsBeyond reports whether a cursor is beyond the end of the journal, as for a follower.
func (f *Feeds) IsBeyond(ctx context.Context, after uint64) (bool, error) {
	f.mu.Lock()
	routed := f.position
	f.mu.Unlock()
	if after <= routed {
		return false, nil
	}
	last, err := f.lastSequence(ctx)
	return err == nil && after > last, err
}

func (f *Feeds) lastSequence(ctx context.Context) (uint64, error) {
	info, err := jsapi.Info(ctx, f.nc, f.space.TurnsStream(), "", 0)
	if err != nil {
		return 0, fmt.Errorf("feed: %w", err)
	}
	return info.State.LastSeq, nil
}

// read reads the next page of the journal, up to the target.
func (w *Follower) read(ctx context.Context) error {
	return w.retry(ctx, func(ctx context.Context) error {
		page, err := w.feeds.page(ctx, w.chat.app, w.user, w.id, w.through, w.target)
		if err != nil {
			return err
		}
		w.page = w.page[:0]
		for i := range page.Records {
			if e := w.feeds.eventOf(&page.Records[i]); e != nil {
				e.Replay = w.replaying
				w.page = append(w.page, e)
			}
		}
		w.through = page.Through
		return nil
	})
}

// page reads a page of a chat for a user. Followers that need the same page share it.
func (f *Feeds) page(ctx context.Context, app, user, id string, after, upTo uint64) (*query.HistoryPage, error) {
	key := app + " " + strconv.FormatUint(after, 10) + " " + strconv.FormatUint(upTo, 10) + " " + id
	take := func(ctx context.Context, begun <-chan struct{}) (func(), error) {
		return f.reads.take(ctx, begun, app, user)
	}
	page, err := f.pages.get(ctx, key, user, take, func() (*query.HistoryPage, error) {
		ctx, cancel := context.WithTimeout(searchbudget.ForUser(f.life, user), readTimeout)
		defer cancel()
		return f.reader.History(ctx, app, id, after, upTo, f.o.PageRecords)
	})
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("feed: read chat: %w", err)
	}
	return page, err
}

// retry repeats do with growing pauses until it succeeds, or until ctx or the follower ends.
func (w *Follower) retry(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.life, func() { cancel(context.Cause(w.life)) })()
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		err := do(ctx)
		if err == nil {
			return nil
		}
		after := wait
		if busy := (*searchbudget.BusyError)(nil); errors.As(err, &busy) {
			after = max(after, busy.After)
		}
		if ended := pause.For(ctx, after); ended != nil {
			if errors.Is(err, ended) {
				return ended
			}
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}
