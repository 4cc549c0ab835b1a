// Package serverclock reads the time by the clock of a server, so that processes whose clocks differ mean
// the same. The server is asked now and then; in between its clock advances like the local one.
package serverclock

import (
	"context"
	"sync"
	"time"
)

// Again is how long a reading of the server's clock is used before the server is asked again.
const Again = time.Minute

// Reading is the same instant by both clocks. The zero value was never read.
type Reading struct{ Process, Server time.Time }

// ToServer turns a time of the process into one of the server.
func (r Reading) ToServer(t time.Time) time.Time { return r.Server.Add(t.Sub(r.Process)) }

// Now returns the time of the server; process is the time of the process now. A reading that was never read returns
// the latter.
func (r Reading) Now(process time.Time) time.Time {
	if r.Process.IsZero() {
		return process
	}
	return r.ToServer(process)
}

// ToProcess turns a time of the server into one of the process.
func (r Reading) ToProcess(t time.Time) time.Time { return r.Process.Add(t.Sub(r.Server)) }

// Clock reads the clock of a server. It is safe for concurrent use.
type Clock struct {
	ask func(ctx context.Context) (time.Time, error)
	now func() time.Time

	mu     sync.Mutex
	last   Reading
	asking bool
}

// New returns a clock that asks a server for its time; now is the clock of the process.
func New(ask func(ctx context.Context) (time.Time, error), now func() time.Time) *Clock {
	return &Clock{ask: ask, now: now}
}

// Now is the time of the server. It fails only as long as the server has never
// answered: later its clock is assumed to advance while it does not answer.
func (c *Clock) Now(ctx context.Context) (time.Time, error) {
	r, err := c.Read(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return r.ToServer(c.now()), nil
}

// Read returns a reading that is not older than [Again], if the server answers.
func (c *Clock) Read(ctx context.Context) (Reading, error) {
	begin := c.now()
	c.mu.Lock()
	last := c.last
	known := !last.Process.IsZero()
	since := begin.Sub(last.Process)
	if known && (c.asking || since >= 0 && since < Again) {
		c.mu.Unlock()
		return last, nil
	}
	c.asking = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.asking = false
		c.mu.Unlock()
	}()
	server, err := c.ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		end := c.now()
		c.last = Reading{Process: begin.Add(end.Sub(begin) / 2), Server: server}
	case c.last.Process.IsZero():
		return Reading{}, err
	}
	return c.last, nil
}
