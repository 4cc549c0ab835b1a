package gateway

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
)

// bodies bounds what bodies of requests and frames of sockets cost, all together, of a tenant and of a user. What arrives is counted by its
// length, and what it becomes by its JSON: a byte may become fifty. Large ones are decoded a few at a time, so that others need not
// wait for the processor. A body takes its room in the order of the fields, so no two of them wait for each other.
type bodies struct {
	arriving *memory // bytes
	decoded  *memory // bytes of their values
	places   *memory // of large ones that are decoded now
}

// Bounds of bodies.
const (
	arrivingMemory = 128 << 20
	decodedMemory  = 256 << 20
	largeBody      = 1 << 20 // of values: decoding takes milliseconds
	bodyPatience   = 5 * time.Second
)

func newBodies() *bodies {
	places := runtime.GOMAXPROCS(0)
	return &bodies{
		arriving: newMemory(arrivingMemory), decoded: newMemory(decodedMemory),
		places: newShares(places, max(1, places/2), max(1, places/4)),
	}
}

// busy is the refusal of a body that found no room.
func busy() *refusedError {
	return &refusedError{
		status: http.StatusServiceUnavailable, code: codeUnavailable, retry: time.Second,
		message: "too many large requests are handled now: try again later, or send less",
	}
}

// weight is how many bytes the values of a JSON document take at most. What looks like JSON in texts counts too.
func weight(document []byte) int {
	const perByte, perObject, perValue = 3, 350, 100
	count := func(c string) int { return min(bytes.Count(document, []byte(c)), events.MaxNodes) } // more are refused
	return perByte*len(document) + perObject*count("{") + perValue*(count("[")+count(","))
}

// held is what a body takes until it is freed. The zero value takes nothing and refuses nothing.
type held struct {
	b       *bodies
	of      auth.Target
	arrived *room
	values  *room
}

// take takes room in a memory, and waits a little for it.
func (h *held) take(ctx context.Context, m *memory, bytes int) (*room, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bodyPatience, busy())
	defer cancel()
	return m.take(ctx, h.of, bytes)
}

// arrive makes room for so many bytes that arrive.
func (h *held) arrive(ctx context.Context, bytes int) (err error) {
	if h.b != nil && h.arrived == nil {
		h.arrived, err = h.take(ctx, h.b.arriving, bytes)
	}
	return err
}

// decode makes room for the values of a document, and calls read when there is a place for it. It may be called again with a part of the
// document.
func (h *held) decode(ctx context.Context, document []byte, read func() error) (err error) {
	if h.b == nil {
		return read()
	}
	size := weight(document)
	if h.values == nil {
		if h.values, err = h.take(ctx, h.b.decoded, size); err != nil {
			return err
		}
	}
	if size >= largeBody {
		place, err := h.take(ctx, h.b.places, 1)
		if err != nil {
			return err
		}
		defer place.free()
	}
	return read()
}

// keep frees all but the room for so many bytes of values.
func (h *held) keep(bytes int) {
	if h.arrived != nil {
		h.arrived.free()
		h.arrived = nil
	}
	if h.values != nil {
		h.values.shrink(bytes)
	}
}

// free frees everything.
func (h *held) free() {
	h.keep(0)
	h.values = nil
}
