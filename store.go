package oneturn

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/inbox"
)

// How full the store may be before a worker stops taking turns, so that open ones can still
// be finished (design 5.13), and how often it looks.
const (
	storeWatermark = 0.85
	storeCheck     = 10 * time.Second
)

// journalCheck is how often a worker looks whether the journal is still the one it began with.
const journalCheck = 5 * time.Second

// guardStore pauses the inbox while the store is nearly full.
func (w *Worker) guardStore(ctx context.Context, in *inbox.Inbox) {
	tick := time.NewTicker(storeCheck)
	defer tick.Stop()
	use := w.c.StoreUse
	if use == nil {
		use = func() (int64, int64, error) { return w.accountUse(ctx) }
	}
	first := true
	paused := false
	for {
		used, limit, err := use()
		switch full := limit > 0 && float64(used) >= storeWatermark*float64(limit); {
		case err != nil:
			w.c.Logger.Debug("the store's limits cannot be read", "err", err)
		case first && limit <= 0:
			w.c.Logger.Info("no store limit is known: watch the disk yourself, a full one stops turns from ending")
		case full && !paused:
			w.c.Logger.Error("the store is nearly full: no new turns are taken; make room, or raise the limit of the account (of an embedded server: --store-max)", "used", used, "limit", limit)
		case !full && paused:
			w.c.Logger.Info("the store has room again: turns are taken", "used", used, "limit", limit)
		}
		if err == nil {
			first = false
			paused = limit > 0 && float64(used) >= storeWatermark*float64(limit)
			in.Pause(paused)
		}
		select {
		case <-tick.C:
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
	info, err := w.js.AccountInfo(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("account info: %w", err)
	}
	return int64(min(info.Store, 1<<62)), info.Limits.MaxStore, nil
}

// guardJournal ends the worker when the journal is gone: what comes in its place has forgotten
// every turn.
func (w *Worker) guardJournal(ctx context.Context, kv *idempotency.KV, fail func(error)) {
	tick := time.NewTicker(journalCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = kv.Check(ctx) // what it finds comes as Gone
		case <-kv.Gone():
			w.c.Logger.Error("the journal is gone; the worker ends", "err", kv.Err())
			fail(fmt.Errorf("oneturn worker: %w", kv.Err()))
			return
		case <-ctx.Done():
			return
		}
	}
}
