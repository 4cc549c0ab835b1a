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
	"strings"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/callhost"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
)

// terminalHosts makes a host for each attempt of a call: questions are asked on the terminal, and answers and
// steps are kept in memory for the duration of the call. What hosts have to do alike is in package callhost.
type terminalHosts struct {
	callhost.Steps

	a      *app
	json   bool
	call   *tools.Call
	secret func(tool string) bool // whether the manifests make the answers of a UI tool secret

	lines func() <-chan string // of standard input; the first call begins to read

	prompting sync.Mutex // held while a question is on the terminal
	mu        sync.Mutex
	answers   map[string]json.RawMessage
}

func (a *app) newTerminalHosts(cfg *callSettings, call *tools.Call, secret func(tool string) bool) *terminalHosts {
	return &terminalHosts{
		a: a, json: cfg.Format == "json", call: call, secret: secret, lines: sync.OnceValue(a.typed), answers: map[string]json.RawMessage{},
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

	clock *engine.Clock
	names callhost.Names // guarded by mu
}

// Ask implements [tools.Host].
func (d *terminalHost) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	d.clock.Stop()
	defer d.clock.Go()
	d.mu.Lock()
	name, err := d.names.Question(q.Name, q.Number, q.Tool, nil)
	value, answered := d.answers[name]
	d.mu.Unlock()
	if err != nil {
		return tools.Answer{}, err
	}
	q.Secret = q.Secret || d.secret(q.Tool) || secrets.AsksAs(cmp.Or(q.Component, q.Tool), q.Payload, q.Schema)
	answer := tools.Answer{ID: events.QuestionID(d.call.CallID, name), Value: value, Secret: q.Secret}
	if answered { // in an earlier attempt
		return answer, nil
	}
	if d.json || !d.a.terminal {
		return tools.Answer{}, &events.Error{
			Code: events.CodeToolError, Op: "ask", Err: tools.ErrNoTerminal,
			Msg: "the tool asks a question, but standard input is not a terminal: run without -o json in a terminal, or publish a turn to a worker",
		}
	}
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	if answer.Value, err = d.prompt(ctx, name, &q); err != nil {
		return tools.Answer{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[name] = answer.Value
	if q.Secret {
		d.call.Secrets.AddSecret(answer.Value, q.Payload)
	}
	return answer, nil
}

// prompt asks a question on the terminal until an answer is valid.
func (d *terminalHost) prompt(ctx context.Context, name string, q *tools.Question) (json.RawMessage, error) {
	d.prompting.Lock()
	defer d.prompting.Unlock()
	check, err := answers.For(q)
	if err != nil {
		return nil, err
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
			value, err := answerOf(line, check)
			if err == nil {
				return value, nil
			}
			d.stderrf("the answer %s\n", cleanLines(messageOf(err)))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, &events.Error{Code: events.CodeExpired, Op: "ask", Msg: "question not answered in time"}
			}
			return nil, context.Cause(ctx)
		}
	}
}

// answerOf is the value of a typed line: JSON if it is a valid answer, else the line as text.
func answerOf(line string, check func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	text, err := events.AppendJSON(nil, line)
	if err != nil {
		return nil, err
	}
	if tree, err := events.Decode([]byte(line)); err == nil {
		data, err := events.AppendJSON(nil, tree)
		if err == nil {
			data, err = check(data)
		}
		if err == nil {
			return data, nil
		}
	}
	return check(text)
}

// Show implements [tools.Host].
func (d *terminalHost) Show(ctx context.Context, s tools.Surface) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	d.mu.Lock()
	name, err := d.names.Surface(s.Name, s.Number, s.Tool, nil)
	d.mu.Unlock()
	if err != nil {
		return "", err
	}
	d.stderrf("%s shows %s: %s\n", id(d.call.Name), id(cmp.Or(s.Component, s.Tool)), oneLine(s.Payload))
	return events.QuestionID(d.call.CallID, name), nil
}

// Dismiss implements [tools.Host]. Printed text is not removed.
func (d *terminalHost) Dismiss(_ context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, err := d.names.Displayed(d.call.CallID, id)
	return err
}

// Progress implements [tools.Host].
func (d *terminalHost) Progress(_ context.Context, p tools.Progress) error {
	percent := ""
	if p.Percent >= 0 {
		percent = fmt.Sprintf("%g %% ", p.Percent)
	}
	d.stderrf("%s: %s%s\n", id(d.call.Name), percent, clean(d.call.Secrets.Text(p.Message), longestWhere))
	return nil
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
