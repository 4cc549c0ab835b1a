package oneturn

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// questions tells who waits for a turn of what the turn asks. Live copies only say that it is
// time to read again.
type questions struct {
	on    func(*Wait) // nil: nobody wants to know
	asked chan struct{}
	sub   *nats.Subscription

	order []*Wait         // that were seen
	known map[string]bool // their ids
	acks  map[string]bool // ids of those that are decided
	told  int             // of order
}

// listen waits for questions of a call.
func (c *Client) listen(key subjects.Key) (*questions, error) {
	q := &questions{on: c.o.OnQuestion}
	if q.on == nil {
		return q, nil
	}
	q.asked, q.known, q.acks = make(chan struct{}, 1), map[string]bool{}, map[string]bool{}
	var err error
	q.sub, err = c.nc.Subscribe(c.space.EventOfTurn(key, events.RecordAsk)+".*", func(*nats.Msg) {
		select {
		case q.asked <- struct{}{}:
		default: // one is enough
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen to questions: %w", err)
	}
	return q, nil
}

func (q *questions) stop() {
	if q.sub != nil {
		_ = q.sub.Unsubscribe() // fails only on a closed connection
	}
}

// saw notes the questions among records of the turn, and which are decided.
func (q *questions) saw(records []PageRecord) {
	if q.on == nil {
		return
	}
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case events.RecordAsk:
			w := readWait(&idempotency.Record{Seq: r.Sequence, Time: r.Time, Data: r.Event}, true)
			if w != nil && !q.known[w.ToolCallID] {
				w.State = WaitOpen
				q.known[w.ToolCallID], q.order = true, append(q.order, w)
			}
		case events.RecordAck:
			if id := eventID(r.Event); id != "" {
				q.acks[id] = true
			}
		}
	}
}

// tell tells of the questions that are open and were not told of.
func (q *questions) tell() {
	for ; q.told < len(q.order); q.told++ {
		if w := q.order[q.told]; !q.acks[w.ToolCallID] {
			q.on(w)
		}
	}
}
