package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Stored is a record of the journal as it was stored.
type Stored struct {
	subjects.Record

	Outcome string
	Event   map[string]any // the data of a public record's event
	At      time.Time
}

// Journal follows the journal from its first record.
type Journal struct {
	changed chan struct{} // has a value after a change
	stop    func()

	mu      sync.Mutex
	records []Stored
}

// follow reads all records of the journal, also those that are stored later.
func follow(ctx context.Context, js jetstream.JetStream, space subjects.Space) (*Journal, error) {
	consumer, err := js.OrderedConsumer(ctx, space.TurnsStream(), jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return nil, fmt.Errorf("follow the journal: %w", err)
	}
	j := &Journal{changed: make(chan struct{}, 1)}
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		r, ok := stored(space, m)
		if !ok {
			return
		}
		j.mu.Lock()
		j.records = append(j.records, r)
		j.mu.Unlock()
		select {
		case j.changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, fmt.Errorf("follow the journal: %w", err)
	}
	j.stop = reading.Stop
	return j, nil
}

func stored(space subjects.Space, m jetstream.Msg) (Stored, bool) {
	key, ok := space.JournalKeyOf(m.Subject())
	if !ok {
		return Stored{}, false
	}
	record, ok := subjects.ParseKey(key)
	if !ok {
		return Stored{}, false
	}
	r := Stored{Record: record, Outcome: m.Headers().Get(idempotency.HeaderOutcome)}
	if meta, err := m.Metadata(); err == nil {
		r.At = meta.Timestamp
	}
	if !record.Private {
		r.Event = eventData(m.Data())
	}
	return r, true
}

// eventData returns the data of an event, nil if it has none.
func eventData(body []byte) map[string]any {
	var envelope struct {
		Data map[string]any `json:"data"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&envelope); err != nil {
		return nil
	}
	return envelope.Data
}

// of returns the records of a turn so far.
func (j *Journal) of(turn string) (list []Stored) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.records {
		if r.Turn == turn {
			list = append(list, r)
		}
	}
	return list
}

// others returns the responses of other turns.
func (j *Journal) others(turn string) (list []Stored) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.records {
		if r.Turn != turn && !r.Private && r.Kind == "tool_response" && r.Call == subjects.SingleCall {
			list = append(list, r)
		}
	}
	return list
}

// kind returns the kind of the event, without its prefix.
func (r *Stored) kind() string {
	kind, _ := r.Event["kind"].(string)
	return strings.TrimPrefix(kind, "chat.")
}

// call returns the id of the event without the id of its turn: "" for the turn, "#0" for a step, "#0/1" for a question.
func (r *Stored) call(root string) string {
	id, _ := r.Event["tool_call_id"].(string)
	return strings.TrimPrefix(id, root)
}

// ended returns the response of the turn, nil if there is none.
func ended(records []Stored) *Stored {
	for i := range records {
		if r := &records[i]; !r.Private && r.Kind == "tool_response" && r.Call == subjects.SingleCall {
			return r
		}
	}
	return nil
}

// parked reports whether the last owner of the turn has parked it, and whether any owner has.
func parked(records []Stored) (now, ever bool) {
	for i := range records {
		switch r := &records[i]; {
		case r.Kind == "park" && r.Outcome == idempotency.ParkParked:
			now, ever = true, true
		case r.Kind == "takeover", r.Kind == "answer":
			now = false
		}
	}
	return now, ever
}

// openQuestions returns the ids of the questions that are asked and not closed, without the id of the turn.
func openQuestions(records []Stored, root string) map[string]bool {
	open := map[string]bool{}
	for i := range records {
		switch r := &records[i]; {
		case r.Private:
		case r.Kind == "ask":
			open[r.call(root)] = true
		case r.Kind == "ack":
			delete(open, r.call(root))
		}
	}
	return open
}
