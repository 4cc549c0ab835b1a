package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// maxTimers is how many timers of a tenant are read by the server's index of names.
const maxTimers = 10_000

// timers reads the stream of timers: every open question has one until its time to answer is over.
type timers struct {
	js     jetstream.JetStream
	stream string
	order  *kvstore.Order

	mu     sync.Mutex
	opened jetstream.Stream // nil before the first read
}

func newTimers(js jetstream.JetStream, space subjects.Space) *timers {
	t := &timers{js: js, stream: space.TimersStream()}
	t.order = kvstore.NewOrderOf(t)
	return t
}

// Subjects implements [kvstore.Index].
func (t *timers) Subjects(ctx context.Context, filter string) (map[string]uint64, uint64, error) {
	m, err := t.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.INFO."+t.stream, fmt.Appendf(nil, `{"subjects_filter":%q}`, filter))
	if err != nil {
		return nil, 0, fmt.Errorf("read the names of the timers: %w", err)
	}
	var info struct {
		Error *jetstream.APIError `json:"error"`
		State struct {
			First    uint64            `json:"first_seq"`
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	switch err := json.Unmarshal(m.Data, &info); {
	case err != nil:
		return nil, 0, fmt.Errorf("read the names of the timers: %w", err)
	case info.Error != nil:
		return nil, 0, fmt.Errorf("read the names of the timers: %w", info.Error)
	case len(info.State.Subjects) > maxTimers:
		return nil, 0, fmt.Errorf("%s has over %d timers: %w", filter, maxTimers, idempotency.ErrTooMany)
	}
	return info.State.Subjects, info.State.First, nil
}

// Sequence implements [kvstore.Index].
func (t *timers) Sequence(ctx context.Context, name string) (uint64, error) {
	stream, err := t.open(ctx)
	if err != nil {
		return 0, err
	}
	m, err := stream.GetLastMsgForSubject(ctx, name)
	if err != nil {
		return 0, explainTimer(err)
	}
	return m.Sequence, nil
}

// next searches the timers from a sequence on for one that matches a filter.
func (t *timers) next(ctx context.Context, filter string, from uint64) (subject string, seq uint64, err error) {
	stream, err := t.open(ctx)
	if err != nil {
		return "", 0, err
	}
	m, err := stream.GetMsg(ctx, max(from, 1), jetstream.WithGetMsgSubject(filter))
	if err != nil {
		return "", 0, explainTimer(err)
	}
	return m.Subject, m.Sequence, nil
}

// open looks the stream up once.
func (t *timers) open(ctx context.Context) (jetstream.Stream, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened != nil {
		return t.opened, nil
	}
	stream, err := t.js.Stream(ctx, t.stream)
	if err != nil {
		return nil, fmt.Errorf("open the timers: %w", err)
	}
	t.opened = stream
	return stream, nil
}

func explainTimer(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return idempotency.ErrNotFound
	}
	return fmt.Errorf("read the timers: %w", err)
}
