package feed

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Event is one event of a chat. Followers share it: it must not be changed.
type Event struct {
	Sequence    uint64          // of the journal, 0 for an event that is not stored
	Time        time.Time       // when it was stored or received
	Kind        string          // of the event's data, such as "tool_call"
	Name        subjects.Record // of the journal; zero for an event that is not stored
	Due         string          // of a message's text: what follows from it, see api.Record
	Fingerprint string          // of a message's text: of what was sent
	Replay      bool            // read for the replay, before the boundary
	JSON        json.RawMessage // the stored event: {"type","data","timestamp"}

	prepared once[[]byte]
	decoded  once[any]
}

// once is a value that is made when it is needed first.
type once[T any] struct {
	do    sync.Once
	value T
	err   error
}

func (o *once[T]) get(e *Event, of func(e *Event) (T, error)) (T, error) {
	o.do.Do(func() { o.value, o.err = of(e) })
	return o.value, o.err
}

// Prepared returns what frame returns for the event, as all followers of a chat send it: it is made once. All callers have to pass
// the same function.
func (e *Event) Prepared(frame func(e *Event) ([]byte, error)) ([]byte, error) {
	return e.prepared.get(e, frame)
}

// Decoded is [Event.Prepared] for what decode makes of the event, which followers share: it must not be changed.
func (e *Event) Decoded(decode func(e *Event) (any, error)) (any, error) {
	return e.decoded.get(e, decode)
}

// Boundary ends the replay.
type Boundary struct {
	Last     uint64 // sequence of the last event before it: the cursor of the follower
	Replayed int    // events of the replay
	Reset    bool   // the cursor was beyond the end of the journal, which is another one: everything was replayed
}

// Item is what [Follower.Next] returns: one of both.
type Item struct {
	Event    *Event
	Boundary *Boundary
}

// eventOf returns the event of a public record, nil for a damaged one, which is reported: nothing can be displayed of it.
func (f *Feeds) eventOf(r *idempotency.Record) *Event {
	name, ok := subjects.ParseKey(r.Key)
	if !ok || name.Private {
		return nil
	}
	if r.Damaged() {
		f.o.Damaged(r.Key, r.Seq)
		return nil
	}
	e := &Event{Sequence: r.Seq, Time: r.Time.UTC(), Kind: kindOf(r.Data), Name: name, JSON: r.Data}
	if name.Kind == events.RecordText {
		e.Due, e.Fingerprint = r.Meta.Outcome, r.Meta.Fingerprint
	}
	return e
}

// kindOf returns the kind in the data of an event, or the type of the event without its prefix.
func kindOf(event []byte) string {
	var e struct {
		Type string `json:"type"`
		Data struct {
			Kind string `json:"kind"`
		} `json:"data"`
	}
	_ = json.Unmarshal(event, &e) // a field of another type stays empty
	if e.Data.Kind != "" {
		return e.Data.Kind
	}
	return strings.TrimPrefix(e.Type, events.TypePrefix)
}

// size is what an event counts in a queue, in bytes.
func (e *Event) size() int {
	const rest = 256 // its fields
	return len(e.JSON) + rest
}
