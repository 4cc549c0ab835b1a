package oneturn

import (
	"errors"
	"sync"
	"time"
)

// What a wait reports about workers: that none answers, or that none has claimed the turn.

// missing reports once that no worker has served the request API for a while.
type missing struct {
	mu    sync.Mutex
	timer *time.Timer
}

func (c *Client) missing(id TurnID) *missing {
	m := &missing{}
	if c.o.OnNoWorker != nil {
		m.timer = time.AfterFunc(c.o.NoWorkerAfter, func() { c.o.OnNoWorker(id) })
	}
	return m
}

// saw notes the outcome of a request: any answer means that a worker is there.
func (m *missing) saw(err error) {
	if err == nil || errors.Is(err, errAPI) {
		m.stop()
	}
}

func (m *missing) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
}

// claimWatch reports once that a turn has no record when it is due. Only a read from the journal
// decides that, so the wait reads more often until then.
type claimWatch struct {
	on  func(TurnID) // nil once it was called, or the turn has records
	due time.Time
}

// pending reports whether it is still open if the turn will be claimed in time.
func (c *claimWatch) pending() bool { return c.on != nil }

// saw notes a read of the turn.
func (c *claimWatch) saw(id TurnID, known bool, err error) {
	switch {
	case c.on == nil || err != nil && !known:
	case known:
		c.on = nil
	case !time.Now().Before(c.due):
		c.on(id)
		c.on = nil
	}
}
