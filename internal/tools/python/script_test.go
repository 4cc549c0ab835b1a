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

// scriptedHost is a host that answers by a script.
type scriptedHost struct {
	answers chan json.RawMessage // the next answer, whichever question is first; nil channel: no answer
	fails   error                // of all but questions
	asked   chan tools.Question  // each question, when it is asked

	mu        sync.Mutex
	prepared  map[string]json.RawMessage // answers by name, immediately
	refused   error                      // of all questions, immediately
	questions []tools.Question
	surfaces  []tools.Surface
	dismissed []string
	progress  []tools.Progress
	steps     map[string]json.RawMessage
	gone      int // questions whose context ended
}

func newHost() *scriptedHost {
	return &scriptedHost{
		asked: make(chan tools.Question, 4096), prepared: map[string]json.RawMessage{},
		steps: map[string]json.RawMessage{}, answers: make(chan json.RawMessage),
	}
}

// answer prepares the answer to a question of a name.
func (d *scriptedHost) answer(name, answer string) *scriptedHost {
	d.prepared[name] = json.RawMessage(answer)
	return d
}

func (d *scriptedHost) refuses(err error) *scriptedHost {
	d.refused = err
	return d
}

func (d *scriptedHost) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	d.mu.Lock()
	d.questions = append(d.questions, q)
	name := id(q.Name, "", q.Number)
	answer, known, err := d.prepared[name], d.prepared[name] != nil, d.refused
	d.mu.Unlock()
	d.asked <- q
	switch {
	case err != nil:
		return tools.Answer{}, err
	case known:
		return tools.Answer{ID: "turn-1/" + name, Value: answer}, nil
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

func (d *scriptedHost) Show(_ context.Context, s tools.Surface) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.surfaces = append(d.surfaces, s)
	return "turn-1/" + id(s.Name, "s", s.Number), d.fails
}

func (d *scriptedHost) Dismiss(_ context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dismissed = append(d.dismissed, id)
	return d.fails
}

func (d *scriptedHost) Progress(_ context.Context, p tools.Progress) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = append(d.progress, p)
	return d.fails
}

func (d *scriptedHost) StepResult(_ context.Context, name string) (json.RawMessage, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	value, done := d.steps[name]
	return value, done, d.fails
}

func (d *scriptedHost) StoreStep(_ context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stored, done := d.steps[name]; done {
		return stored, d.fails
	}
	d.steps[name] = result
	return result, d.fails
}

// at runs t.py's function at a scriptedHost.
func (k *kit) at(ctx context.Context, d tools.Host, function, args string) (tools.Result, error) {
	call := newCall(k.tb, function, args)
	call.Host = d
	return k.pool.Tool("WF", "t.py", function).Invoke(ctx, call)
}

// valueAt runs t.py's function at a scriptedHost; it must succeed.
func (k *kit) valueAt(d tools.Host, function, args string) string {
	k.tb.Helper()
	ctx, cancel := context.WithTimeout(k.tb.Context(), 20*time.Second)
	defer cancel()
	result, err := k.at(ctx, d, function, args)
	require.NoError(k.tb, err)
	return string(result.Value)
}

// background runs t.py's function at a scriptedHost in the background.
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
