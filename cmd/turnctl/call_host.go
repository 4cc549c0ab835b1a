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

// terminalHosts makes a host for each attempt of a call: questions are asked on the terminal, and answers and
// steps are kept in memory for the duration of the call.
type terminalHosts struct {
	a      *app
	json   bool
	call   *tools.Call
	secret func(tool string) bool // whether the manifests make the answers of a UI tool secret

	lines func() <-chan string // of standard input; the first call begins to read

	prompting sync.Mutex // held while a question is on the terminal
	mu        sync.Mutex
	answers   map[string]json.RawMessage
	steps     map[string]json.RawMessage
}

func (a *app) newTerminalHosts(cfg *callSettings, call *tools.Call, secret func(tool string) bool) *terminalHosts {
	return &terminalHosts{
		a: a, json: cfg.Format == "json", call: call, secret: secret, lines: sync.OnceValue(a.typed),
		answers: map[string]json.RawMessage{}, steps: map[string]json.RawMessage{},
	}
}

// typed returns the lines of standard input. Reading cannot be interrupted: it ends with the input or the
// process.
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
func (c *terminalHosts) Host(clock *engine.Clock) tools.Host {
	return &terminalHost{terminalHosts: c, clock: clock}
}

// terminalHost is the host of one attempt.
type terminalHost struct {
	*terminalHosts

	clock    *engine.Clock
	numbered int // questions without a name
	shown    int // surfaces without a name
}

// Ask implements [tools.Host].
func (d *terminalHost) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	d.clock.Stop()
	defer d.clock.Go()
	d.mu.Lock()
	if q.Name == "" && q.Number == 0 {
		d.numbered++
		q.Number = d.numbered
	}
	name := events.AskID(q.Name, q.Number)
	q.Secret = q.Secret || d.secret(q.Tool) || secrets.AsksAs(cmp.Or(q.Component, q.Tool), q.Payload, q.Schema)
	value, answered := d.answers[name]
	d.mu.Unlock()
	if answered { // in an earlier attempt
		return tools.Answer{ID: name, Value: value, Secret: q.Secret}, nil
	}
	if d.json || !d.a.terminal {
		return tools.Answer{}, &events.Error{
			Code: events.CodeToolError, Op: "ask",
			Msg: "the tool asks a question, but standard input is not a terminal: run without -o json in a terminal, or publish a turn to a worker",
		}
	}
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	value, err := d.prompt(ctx, name, &q)
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

// prompt asks a question on the terminal until an answer is valid.
func (d *terminalHost) prompt(ctx context.Context, name string, q *tools.Question) (json.RawMessage, error) {
	d.prompting.Lock()
	defer d.prompting.Unlock()
	var schema *model.Value
	if len(q.Schema) > 0 {
		var err error
		if schema, err = model.CompileValue(name, q.Schema); err != nil {
			return nil, &events.Error{Code: events.CodeToolError, Op: "ask", Msg: "the schema of the question is invalid: " + messageOf(err), Err: err}
		}
	}
	note := ""
	if q.Secret {
		note = ", secret: the input is visible"
	}
	asks := id(d.call.Name) + " asks"
	if what := cmp.Or(q.Component, q.Tool); what != "" && what != d.call.Name {
		asks += " " + id(what)
	}
	d.stderrf("%s (question %s%s): %s\n", asks, id(name), note, oneLine(q.Payload))
	for {
		d.stderrf("answer, %s> ", shortOf(q.Schema))
		select {
		case line, more := <-d.lines():
			if !more {
				return nil, &events.Error{Code: events.CodeToolError, Op: "ask", Msg: "question not answered: standard input ended"}
			}
			value, why := answerOf(line, schema)
			if why == "" {
				return value, nil
			}
			d.stderrf("%s\n", cleanLines(why))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, &events.Error{Code: events.CodeExpired, Op: "ask", Msg: "question not answered in time"}
			}
			return nil, context.Cause(ctx)
		}
	}
}

// answerOf is the value of a typed line: JSON if it is valid JSON, else a text; and why it is invalid.
func answerOf(line string, schema *model.Value) (value json.RawMessage, why string) {
	for _, tree := range readings(line) {
		if schema != nil {
			conformed, _, violations := schema.Conform(tree)
			if len(violations) > 0 {
				why = strings.TrimSuffix(violations[0].String(), ".")
				continue
			}
			tree = conformed
		}
		encoded, err := events.AppendJSON(nil, tree)
		if err != nil {
			why = messageOf(err)
			continue
		}
		return json.RawMessage(encoded), ""
	}
	return nil, "invalid answer: " + strings.TrimPrefix(why, ": ")
}

// readings are the values that a line may have.
func readings(line string) []any {
	if tree, err := events.Decode([]byte(line)); err == nil {
		return []any{tree, line}
	}
	return []any{line}
}

// Show implements [tools.Host].
func (d *terminalHost) Show(ctx context.Context, s tools.Surface) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	d.mu.Lock()
	if s.Name == "" && s.Number == 0 {
		d.shown++
		s.Number = d.shown
	}
	d.mu.Unlock()
	d.stderrf("%s shows %s: %s\n", id(d.call.Name), id(cmp.Or(s.Component, s.Tool)), oneLine(s.Payload))
	return events.SurfaceID(s.Name, s.Number), nil
}

// Dismiss implements [tools.Host]. Printed text is not removed.
func (d *terminalHost) Dismiss(context.Context, string) error { return nil }

// Progress implements [tools.Host].
func (d *terminalHost) Progress(_ context.Context, p tools.Progress) error {
	percent := ""
	if p.Percent >= 0 {
		percent = fmt.Sprintf("%g %% ", p.Percent)
	}
	d.stderrf("%s: %s%s\n", id(d.call.Name), percent, clean(d.call.Secrets.Text(p.Message), longestWhere))
	return nil
}

// StepResult implements [tools.Host].
func (d *terminalHost) StepResult(_ context.Context, name string) (result json.RawMessage, done bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	result, done = d.steps[name]
	return result, done, nil
}

// StoreStep implements [tools.Host].
func (d *terminalHost) StoreStep(_ context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stored, done := d.steps[name]; done {
		return stored, nil
	}
	d.steps[name] = slices.Clone(result)
	return result, nil
}

// stderrf writes to standard error.
func (c *terminalHosts) stderrf(format string, args ...any) { fmt.Fprintf(c.a.stderr, format, args...) }

// oneLine prints the beginning of a JSON value on one line.
func oneLine(data json.RawMessage) string {
	const longest = 2000
	var compact bytes.Buffer
	if len(data) == 0 || json.Compact(&compact, data) != nil {
		return "-"
	}
	return clean(compact.String(), longest)
}

// tracer writes the phases of a call, one per line.
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
