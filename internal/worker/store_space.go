package worker

// The room of the store: the worker reads every 3 s how full it is, claims no new turns from 85 % on, and
// passes what is left to the handlers, which count what they store until the next reading.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/provision"
)

// How full the store may be before a worker claims no new turns, so that open ones can still be finished, and
// how often it is checked.
const (
	storeWatermark = 0.85
	reserveShare   = 20 // of the limit, beyond the watermark cancels of new turns may use one part in so many
	storeCheck     = 3 * time.Second
	infoTimeout    = 5 * time.Second // of one request for the use of the account
)

// storeRoom is whether the store has room for new turns. The zero value has.
type storeRoom struct {
	none  atomic.Bool
	last  atomic.Pointer[time.Time] // when there was none
	bytes atomic.Pointer[roomReading]
}

// roomReading is how many bytes were left until the store counts as nearly full.
type roomReading struct {
	left, reserve int64
	number        uint64 // from 1 on
}

// left is for [handlers.Config].
func (r *storeRoom) left() (left, reserve int64, number uint64) {
	if at := r.bytes.Load(); at != nil {
		return at.left, at.reserve, at.number
	}
	return 0, 0, 0
}

// update sets what is left of a limit, -1 for none.
func (r *storeRoom) update(used, limit int64) {
	if limit <= 0 {
		r.bytes.Store(nil)
		return
	}
	_, _, before := r.left()
	r.bytes.Store(&roomReading{left: int64(storeWatermark*float64(limit)) - used, reserve: limit / reserveShare, number: before + 1})
}

// full is for [handlers.Config].
func (r *storeRoom) full() (now bool, last time.Time) {
	if at := r.last.Load(); at != nil {
		last = *at
	}
	return r.none.Load(), last
}

func (r *storeRoom) err() error {
	if r.none.Load() {
		return errors.New("the store is nearly full: no new turns are claimed")
	}
	return nil
}

func (r *storeRoom) set(full bool) {
	if full {
		now := time.Now()
		r.last.Store(&now)
	}
	r.none.Store(full)
}

// watchStore returns the check of the store.
func (w *Worker) watchStore() (check func(context.Context)) {
	known, before := false, false
	return func(ctx context.Context) {
		used, limit, err := w.storeUse(ctx)
		if err != nil {
			w.c.Logger.Debug("the store's limits cannot be read", "err", err)
			return
		}
		full := limit > 0 && float64(used) >= storeWatermark*float64(limit)
		switch {
		case !known && limit <= 0:
			w.c.Logger.Info("no store limit is known: watch the disk yourself, a full one stops turns from ending")
		case full && !before:
			w.c.Logger.Error("the store is nearly full: no new turns are claimed, open ones continue; make room, or raise the limit of the account (of an embedded server: --store-max)", "used", used, "limit", limit)
		case !full && before:
			w.c.Logger.Info("the store has room again: new turns are claimed", "used", used, "limit", limit)
		}
		known, before = true, full
		w.room.set(full)
		w.room.update(used, limit)
	}
}

func (w *Worker) storeUse(ctx context.Context) (used, limit int64, err error) {
	if w.c.StoreUse != nil {
		return w.c.StoreUse()
	}
	return w.accountUse(ctx)
}

// every calls do once an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// accountUse is [provision.StoreUse] of the account.
func (w *Worker) accountUse(ctx context.Context) (used, limit int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	return provision.StoreUse(ctx, w.js, w.space.TurnsStream())
}
