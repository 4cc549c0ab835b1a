package python_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools"
)

// desk is a desk whose people answer by a script.
type desk struct {
	answers chan json.RawMessage // the next answer, whichever question is first; nil channel: nobody answers
	fails   error                // of all but questions
	asked   chan tools.Question  // each question, when it is asked

	mu        sync.Mutex
	said      map[string]json.RawMessage // answers by name, at once
	refused   error                      // of all questions, at once
	questions []tools.Question
	surfaces  []tools.Surface
	dismissed []string
	progress  []tools.Progress
	steps     map[string]json.RawMessage
	gone      int // questions whose context ended
}

func newDesk() *desk {
	return &desk{
		asked: make(chan tools.Question, 4096), said: map[string]json.RawMessage{},
		steps: map[string]json.RawMessage{}, answers: make(chan json.RawMessage),
	}
}

// says answers the question of a name.
func (d *desk) says(name, answer string) *desk {
	d.said[name] = json.RawMessage(answer)
	return d
}

func (d *desk) refuses(err error) *desk {
	d.refused = err
	return d
}

func (d *desk) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	d.mu.Lock()
	d.questions = append(d.questions, q)
	name := id(q.Name, "", q.Number)
	said, known, err := d.said[name], d.said[name] != nil, d.refused
	d.mu.Unlock()
	d.asked <- q
	switch {
	case err != nil:
		return tools.Answer{}, err
	case known:
		return tools.Answer{ID: "turn-1/" + name, Value: said}, nil
	}
	select {
	case value := <-d.answers:
		return tools.Answer{ID: "turn-1/" + name, Value: value}, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gone++
		return tools.Answer{}, ctx.Err()
	}
}

// id is the name or the number.
func id(name, before string, number int) string {
	if name != "" {
		return name
	}
	return before + strconv.Itoa(number)
}

func (d *desk) Show(_ context.Context, s tools.Surface) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.surfaces = append(d.surfaces, s)
	return "turn-1/" + id(s.Name, "s", s.Number), d.fails
}

func (d *desk) Dismiss(_ context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dismissed = append(d.dismissed, id)
	return d.fails
}

func (d *desk) Progress(_ context.Context, p tools.Progress) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = append(d.progress, p)
	return d.fails
}

func (d *desk) StepResult(_ context.Context, name string) (json.RawMessage, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	value, done := d.steps[name]
	return value, done, d.fails
}

func (d *desk) StoreStep(_ context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stored, done := d.steps[name]; done {
		return stored, d.fails
	}
	d.steps[name] = result
	return result, d.fails
}

// at runs t.py's function at a desk.
func (k *kit) at(ctx context.Context, d tools.Host, function, args string) (tools.Result, error) {
	call := newCall(k.tb, function, args)
	call.Host = d
	return k.pool.Tool("WF", "t.py", function).Invoke(ctx, call)
}

// valueAt runs t.py's function at a desk; it must succeed.
func (k *kit) valueAt(d tools.Host, function, args string) string {
	k.tb.Helper()
	ctx, cancel := context.WithTimeout(k.tb.Context(), 20*time.Second)
	defer cancel()
	result, err := k.at(ctx, d, function, args)
	require.NoError(k.tb, err)
	return string(result.Value)
}

// background runs t.py's function at a desk in the background.
func (k *kit) background(ctx context.Context, d tools.Host, function, args string) (ended chan error, value *string) {
	k.tb.Helper()
	ended, value = make(chan error, 1), new(string)
	call := newCall(k.tb, function, args)
	call.Host = d
	go func() {
		result, err := k.pool.Tool("WF", "t.py", function).Invoke(ctx, call)
		*value = string(result.Value)
		ended <- err
	}()
	return ended, value
}

func next[T any](tb testing.TB, c <-chan T) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(15 * time.Second):
		require.Fail(tb, "nothing came")
		panic("not reached")
	}
}
