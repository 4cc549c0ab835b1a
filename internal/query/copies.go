package query

import (
	"context"
	"sync"
	"time"

	"github.com/oneturn/oneturn/internal/jsapi"
)

// Pauses between checks of the copies of the journal: as long as they do not change, and after one has not answered.
const (
	lookEvery  = 10 * time.Second
	lookFailed = time.Minute
)

// source is the stream that histories are read from.
type source struct {
	stream string
	mirror bool // a mirror of the journal, and not the journal
	none   bool // none answers batches
}

// copies knows the copies of a journal.
type copies struct {
	mu        sync.Mutex
	at        time.Time // when found was read
	found     source
	noMirror  time.Time // until when the mirror is not used
	noBatches time.Time // until when the journal is not asked for batches
}

// source returns the copy to read histories from: the mirror if there is one.
func (c *copies) source(ctx context.Context, r *Reader) source {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.at.IsZero() || now.Sub(c.at) > lookEvery {
		if found, ok := findSource(ctx, r); ok {
			c.found, c.at = found, now
		}
	}
	from := c.found
	if from.mirror && now.Before(c.noMirror) {
		from.stream, from.mirror = r.space.TurnsStream(), false
	}
	from.none = from.stream == "" || !from.mirror && now.Before(c.noBatches)
	return from
}

// failed remembers for a while that a copy does not answer.
func (c *copies) failed(from source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(lookFailed); from.mirror {
		c.noMirror = until
	} else {
		c.noBatches = until
	}
}

// findSource asks the server for the journal and its mirror. A mirror that is older than the journal has the records of another one.
func findSource(ctx context.Context, r *Reader) (found source, ok bool) {
	journal, err := jsapi.Info(ctx, r.nc, r.space.TurnsStream(), "", 0)
	if err != nil {
		return source{}, false
	}
	found = source{stream: r.space.TurnsStream()}
	if !journal.Config.AllowDirect {
		found.stream = ""
	}
	mirror, err := jsapi.Info(ctx, r.nc, r.space.TurnsMirror(), "", 0)
	if err == nil && IsMirror(mirror, journal) {
		found.stream, found.mirror = r.space.TurnsMirror(), true
	}
	return found, true
}

// IsMirror reports whether histories may be read from a stream: it mirrors this journal and forgets nothing before the journal does.
func IsMirror(stream, of *jsapi.InfoPage) bool {
	mirror, journal := &stream.Config, &of.Config
	return stream.Created.After(of.Created) && mirror.Mirror != nil && mirror.Mirror.Name == journal.Name && mirror.AllowDirect &&
		(mirror.MaxAge == 0 || journal.MaxAge > 0 && mirror.MaxAge >= journal.MaxAge) &&
		mirror.MaxMsgs <= 0 && mirror.MaxBytes <= 0 && mirror.MaxMsgsPerSubject == 1
}
