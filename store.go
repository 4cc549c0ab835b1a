package oneturn

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/inbox"
	"github.com/oneturn/oneturn/provision"
)

// How full the store may be before a worker stops taking turns, so that open ones can still
// be finished (design 5.13), and how often it looks.
const (
	storeWatermark = 0.85
	storeCheck     = 3 * time.Second
)

// guardStore returns a look at the store, which pauses the inbox while it is nearly full.
func (w *Worker) guardStore(in *inbox.Inbox) (look func(context.Context)) {
	known, paused := false, false
	return func(ctx context.Context) {
		used, limit, err := w.storeUse(ctx)
		if err != nil {
			w.c.Logger.Debug("the store's limits cannot be read", "err", err)
			return
		}
		switch full := limit > 0 && float64(used) >= storeWatermark*float64(limit); {
		case !known && limit <= 0:
			w.c.Logger.Info("no store limit is known: watch the disk yourself, a full one stops turns from ending")
		case full && !paused:
			w.c.Logger.Error("the store is nearly full: no new turns are taken; make room, or raise the limit of the account (of an embedded server: --store-max)", "used", used, "limit", limit)
			paused = true
		case !full && paused:
			w.c.Logger.Info("the store has room again: turns are taken", "used", used, "limit", limit)
			paused = false
		}
		known = true
		in.Pause(paused)
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

// accountUse returns the bytes that the account stores on file, and may store; the limit is -1
// when there is none.
func (w *Worker) accountUse(ctx context.Context) (used, limit int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	return provision.StoreUse(ctx, w.js, w.space.TurnsStream())
}
