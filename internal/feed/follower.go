package feed

import "context"

// Follower receives the events of one chat. Only one goroutine may call Next.
type Follower struct {
	feeds *Feeds
	chat  chat
	id    string // of the chat
	user  string // for whom the journal is read, "" for the tenant alone

	// Of Next.
	checked   bool     // that the cursor is not beyond the end of the journal
	through   uint64   // every record up to this sequence was delivered or is in the page
	last      uint64   // sequence of the event that was delivered last, or the cursor
	page      []*Event // read from the journal
	replaying bool     // until the boundary
	replayed  int
	reset     bool

	taken []*Event // from the queue
	at    int      // the first of them that was not delivered

	target uint64 // records up to this sequence are read from the journal, later ones are queued

	life context.Context //nolint:containedctx // ends with the feed too
	end  context.CancelCauseFunc
	wake chan struct{} // holds one when the queue has changed

	// Guarded by the hub.
	queue   []*Event // events that were routed and not taken yet
	size    int      // of the queue in bytes
	lagging bool     // the queue was dropped
}

// For sets the user for whom the journal is read, before Next is called: one user gets a part of the reads of its tenant at most.
func (w *Follower) For(user string) *Follower {
	w.user = user
	return w
}

// Next returns the next event or the boundary, and blocks until there is one. Stored events come in the order of their sequences, each
// once. Reads that fail are repeated until ctx ends. Another call continues where one ended with an error, unless the error is
// [ErrClosed] or [ErrJournalReplaced].
func (w *Follower) Next(ctx context.Context) (Item, error) {
	for {
		if err := w.err(ctx); err != nil {
			return Item{}, err
		}
		switch {
		case len(w.page) > 0:
			e := w.page[0]
			w.page = w.page[1:]
			return w.deliver(e), nil
		case !w.checked:
			if err := w.check(ctx); err != nil {
				return Item{}, err
			}
		case w.through < w.target:
			if err := w.read(ctx); err != nil {
				return Item{}, err
			}
		case w.replaying:
			w.replaying = false
			return Item{Boundary: &Boundary{Last: w.last, Replayed: w.replayed, Reset: w.reset}}, nil
		default:
			if e := w.live(ctx); e != nil {
				return w.deliver(e), nil
			}
		}
	}
}

// Close ends the follower: Next returns [ErrClosed].
func (w *Follower) Close() {
	w.end(ErrClosed)
	w.feeds.forget(w)
}

// deliver notes that an event is delivered.
func (w *Follower) deliver(e *Event) Item {
	if e.Sequence > 0 {
		w.last = e.Sequence
	}
	if e.Replay {
		w.replayed++
	}
	return Item{Event: e}
}

// Reset reports whether the cursor was beyond the end of the journal, so that everything is sent. It is known when Next has
// returned an item.
func (w *Follower) Reset() bool { return w.reset }

// Pending reports whether Next would return an event that is in memory. A caller may collect some before it sends them.
func (w *Follower) Pending() bool {
	return len(w.page) > 0 || w.at < len(w.taken) && w.isNew(w.taken[w.at])
}

// isNew reports whether an event was not delivered before.
func (w *Follower) isNew(e *Event) bool { return e.Sequence == 0 || e.Sequence > w.through }

// live returns the next event of the queue and blocks while the queue is empty. It returns nil if the journal has to be read, or the
// queue looked at again.
func (w *Follower) live(ctx context.Context) *Event {
	if w.at == len(w.taken) {
		w.feeds.take(w)
	}
	switch {
	case w.at < len(w.taken):
		e := w.taken[w.at]
		w.taken[w.at] = nil
		w.at++
		if !w.isNew(e) {
			return nil
		}
		w.through = max(w.through, e.Sequence)
		return e
	case w.through < w.target: // records were dropped
		return nil
	}
	select {
	case <-w.wake:
	case <-w.life.Done():
	case <-ctx.Done():
	}
	return nil
}

// err returns why Next has to end, nil if it does not.
func (w *Follower) err(ctx context.Context) error {
	switch {
	case w.life.Err() != nil:
		return context.Cause(w.life)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}
