package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
)

// counter is what a tool that turnctl calls can reach: the person at the terminal, and a memory
// that lasts as long as the call. It gives each attempt a desk of its own.
type counter struct {
	a      *app
	json   bool
	call   *tools.Call
	secret func(tool string) bool // whether the manifests make the answers of a UI tool secret

	lines func() <-chan string // typed, starts to read when it is called first

	asking  sync.Mutex // held while a question is on the terminal
	mu      sync.Mutex
	answers map[string]json.RawMessage
	steps   map[string]json.RawMessage
}

func (a *app) newCounter(cfg *callSettings, call *tools.Call, secret func(tool string) bool) *counter {
	return &counter{
		a: a, json: cfg.Format == "json", call: call, secret: secret, lines: sync.OnceValue(a.typed),
		answers: map[string]json.RawMessage{}, steps: map[string]json.RawMessage{},
	}
}

// typed returns the lines of standard input. Nobody can interrupt the reading: it ends with the
// input, or the process.
func (a *app) typed() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(a.stdin)
		const longest = 1 << 20
		in.Buffer(nil, longest)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	return lines
}

// Host implements [engine.Hosts].
func (c *counter) Host(clock *engine.Clock) tools.Host { return &callDesk{counter: c, clock: clock} }

// callDesk is the desk of one attempt.
type callDesk struct {
	*counter

	clock *engine.Clock
	asked int // questions without a name
	shown int // surfaces without a name
}

// Ask implements [tools.Host].
func (d *callDesk) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	d.clock.Stop()
	defer d.clock.Go()
	d.mu.Lock()
	if q.Name == "" && q.Number == 0 {
		d.asked++
		q.Number = d.asked
	}
	name := events.AskID(q.Name, q.Number)
	q.Secret = q.Secret || d.secret(q.Tool) || secrets.AsksAs(cmp.Or(q.Component, q.Tool), q.Payload, q.Schema)
	value, answered := d.answers[name]
	d.mu.Unlock()
	if answered { // in an attempt before
		return tools.Answer{ID: name, Value: value, Secret: q.Secret}, nil
	}
	if d.json || !d.a.terminal {
		return tools.Answer{}, &events.Error{
			Code: events.CodeToolError, Op: "ask",
			Msg: "the tool asks a person, and there is no terminal to ask on: call it without -o json at a terminal, or publish a turn to a worker",
		}
	}
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	value, err := d.put(ctx, name, &q)
	if err != nil {
		return tools.Answer{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[name] = value
	if q.Secret {
		d.call.Secrets.AddSecret(value, q.Payload)
	}
	return tools.Answer{ID: name, Value: value, Secret: q.Secret}, nil
}

// put puts a question to the person at the terminal until there is an answer that fits.
func (d *callDesk) put(ctx context.Context, name string, q *tools.Question) (json.RawMessage, error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	var schema *model.Value
	if len(q.Schema) > 0 {
		var err error
		if schema, err = model.CompileValue(name, q.Schema); err != nil {
			return nil, &events.Error{Code: events.CodeToolError, Op: "ask", Msg: "the schema of the question cannot be used: " + messageOf(err), Err: err}
		}
	}
	note := ""
	if q.Secret {
		note = ", secret: it shows as you type"
	}
	asks := id(d.call.Name) + " asks"
	if what := cmp.Or(q.Component, q.Tool); what != "" && what != d.call.Name {
		asks += " " + id(what)
	}
	d.tellf("%s (question %s%s): %s\n", asks, id(name), note, oneLine(q.Payload))
	for {
		d.tellf("answer, %s> ", shortOf(q.Schema))
		select {
		case line, more := <-d.lines():
			if !more {
				return nil, &events.Error{Code: events.CodeToolError, Op: "ask", Msg: "nobody has answered: standard input has ended"}
			}
			value, why := answerOf(line, schema)
			if why == "" {
				return value, nil
			}
			d.tellf("%s\n", cleanLines(why))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, &events.Error{Code: events.CodeExpired, Op: "ask", Msg: "nobody answered in time"}
			}
			return nil, context.Cause(ctx)
		}
	}
}

// answerOf is what a typed line means: JSON if it is, else a text; and why it does not fit.
func answerOf(line string, schema *model.Value) (value json.RawMessage, why string) {
	for _, tree := range readings(line) {
		if schema != nil {
			fitting, _, faults := schema.Conform(tree)
			if len(faults) > 0 {
				why = strings.TrimSuffix(faults[0].String(), ".")
				continue
			}
			tree = fitting
		}
		encoded, err := events.AppendJSON(nil, tree)
		if err != nil {
			why = messageOf(err)
			continue
		}
		return json.RawMessage(encoded), ""
	}
	return nil, "that does not fit: " + strings.TrimPrefix(why, ": ")
}

// readings are what a line may mean.
func readings(line string) []any {
	if tree, err := events.Decode([]byte(line)); err == nil {
		return []any{tree, line}
	}
	return []any{line}
}

// Show implements [tools.Host].
func (d *callDesk) Show(ctx context.Context, s tools.Surface) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	d.mu.Lock()
	if s.Name == "" && s.Number == 0 {
		d.shown++
		s.Number = d.shown
	}
	d.mu.Unlock()
	d.tellf("%s shows %s: %s\n", id(d.call.Name), id(cmp.Or(s.Component, s.Tool)), oneLine(s.Payload))
	return events.SurfaceID(s.Name, s.Number), nil
}

// Dismiss implements [tools.Host]. What was printed stays.
func (d *callDesk) Dismiss(context.Context, string) error { return nil }

// Progress implements [tools.Host].
func (d *callDesk) Progress(_ context.Context, p tools.Progress) error {
	percent := ""
	if p.Percent >= 0 {
		percent = fmt.Sprintf("%g %% ", p.Percent)
	}
	d.tellf("%s: %s%s\n", id(d.call.Name), percent, clean(d.call.Secrets.Text(p.Message), longestWhere))
	return nil
}

// StepResult implements [tools.Host].
func (d *callDesk) StepResult(_ context.Context, name string) (result json.RawMessage, done bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	result, done = d.steps[name]
	return result, done, nil
}

// StoreStep implements [tools.Host].
func (d *callDesk) StoreStep(_ context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stored, done := d.steps[name]; done {
		return stored, nil
	}
	d.steps[name] = slices.Clone(result)
	return result, nil
}

// tellf writes to standard error.
func (c *counter) tellf(format string, args ...any) { fmt.Fprintf(c.a.stderr, format, args...) }

// oneLine prints JSON on one line, the beginning of it.
func oneLine(data json.RawMessage) string {
	const longest = 2000
	var compact bytes.Buffer
	if len(data) == 0 || json.Compact(&compact, data) != nil {
		return "-"
	}
	return clean(compact.String(), longest)
}

// tracer writes the phases of a call, one a line.
type tracer struct{ w io.Writer }

// Emit implements [engine.Tracer].
func (t tracer) Emit(_ context.Context, name string, attrs ...slog.Attr) {
	var line strings.Builder
	line.WriteString(name)
	for _, attr := range attrs {
		if attr.Key != "tool_name" {
			line.WriteString(" " + attr.Key + "=" + clean(attr.Value.String(), longestWhere))
		}
	}
	line.WriteByte('\n')
	fmt.Fprint(t.w, line.String())
}
