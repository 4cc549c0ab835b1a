package worker

import (
	"errors"
	"time"
)

// Ready reports why the worker does not consume, or nil when it does.
func (w *Worker) Ready() error {
	in := w.inbox.Load()
	if in == nil {
		if idle := w.idle.Load(); idle != nil {
			return *idle
		}
		return errors.New("not started")
	}
	return errors.Join(in.Ready(), w.room.err(), w.writes.err(), w.journal.Load().Err(), w.denied.Err(deniedFor))
}

// deniedFor is how long a worker is not ready after it was denied something.
const deniedFor = time.Minute
