package query

import (
	"context"
	"time"
)

// Source is the stream that histories are read from.
type Source struct {
	Stream       string
	Mirror, None bool
}

// Use has histories read from a stream for an hour, in batches.
func (r *Reader) Use(s Source) {
	r.near = 0
	r.copies.mu.Lock()
	defer r.copies.mu.Unlock()
	r.copies.found, r.copies.at = source{s.Stream, s.Mirror, s.None}, time.Now().Add(time.Hour)
	r.copies.noMirror, r.copies.noBatches = time.Time{}, time.Time{}
	if s.None {
		r.copies.noBatches = time.Now().Add(time.Hour)
	}
}

// Look returns the stream that histories are read from, again after what was found is forgotten.
func (r *Reader) Look(ctx context.Context, again bool) Source {
	if again {
		r.copies.mu.Lock()
		r.copies.at = time.Time{}
		r.copies.mu.Unlock()
	}
	s := r.copies.source(ctx, r)
	return Source{s.stream, s.mirror, s.none}
}

// Failed remembers that a copy does not answer.
func (r *Reader) Failed(mirror bool) { r.copies.failed(source{mirror: mirror}) }
