package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tool"
)

// entered is one run of a tool of a case.
type entered struct {
	args   json.RawMessage // as the tool got them, with the numbers as written
	n      int             // of the tool: 1 for the first run in any process
	client *oneturn.Client // for tools that publish turns
}

// run does what the behaviour describes and returns the result of the tool.
func (b *Behaviour) run(ctx context.Context, e *entered) (json.RawMessage, error) {
	switch b.Do {
	case "echo":
		return e.args, nil
	case "const":
		return b.Output, nil
	case "fail":
		return nil, b.failure()
	case "delay", "hang":
		return b.wait(ctx, e)
	case "panic":
		panic(b.Message)
	case "sequence":
		return b.Of[min(e.n, len(b.Of))-1].run(ctx, e)
	case "ask":
		return b.ask(ctx)
	case "fill":
		return b.fill()
	case "sizes":
		return measure(e.args, size)
	case "levels":
		return measure(e.args, levels)
	case "nest":
		return json.RawMessage(`{` + string(encoded(b.Field)) + `:` + strings.Repeat(`{"in":`, b.Levels) + `{}` + strings.Repeat(`}`, b.Levels+1)), nil
	case "set_context":
		for _, name := range keys(b.Set) {
			if err := tool.Vars(ctx).Set(name, b.Set[name]); err != nil {
				return nil, err
			}
		}
		return json.RawMessage(`{}`), nil
	case "get_context":
		found := map[string]any{}
		for _, name := range b.Names {
			if v, ok := tool.Vars(ctx).Get(name); ok {
				found[name] = v
			}
		}
		return encoded(found), nil
	case "publish_turn":
		return e.publish(ctx)
	}
	return nil, fmt.Errorf("unknown behaviour %q", b.Do)
}

// failure returns the error of a tool that fails with the code and message of the case.
func (b *Behaviour) failure() error {
	var err error
	switch events.Code(b.Code) {
	case events.CodeUserError:
		err = tool.UserError(b.Message)
	case events.CodeToolError, "":
		err = errors.New(b.Message)
	default:
		err = &events.Error{Code: events.Code(b.Code), Msg: b.Message}
	}
	if b.Retryable {
		return tool.Retryable(err)
	}
	return err
}

// wait continues with Then after a time, or ends with the context. Without a time it ends with the context only.
func (b *Behaviour) wait(ctx context.Context, e *entered) (json.RawMessage, error) {
	var over <-chan time.Time
	if b.Do == "delay" {
		t := time.NewTimer(time.Duration(b.MS) * time.Millisecond)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-over:
	}
	if b.Then == nil {
		return json.RawMessage(`{}`), nil
	}
	return b.Then.run(ctx, e)
}

// ask asks a person and returns the answer.
func (b *Behaviour) ask(ctx context.Context) (json.RawMessage, error) {
	var q struct {
		Name      string          `json:"name"`
		Component string          `json:"component"`
		Payload   json.RawMessage `json:"payload"`
		Schema    json.RawMessage `json:"schema"`
	}
	if err := json.Unmarshal(b.Question, &q); err != nil {
		return nil, fmt.Errorf("question of the case: %w", err)
	}
	question := tool.Question{Name: q.Name, Component: q.Component, Schema: q.Schema}
	if q.Payload != nil {
		question.Payload = q.Payload
	}
	answer, err := tool.Ask[json.RawMessage](ctx, question)
	if err != nil {
		return nil, err
	}
	return encoded(map[string]any{"answer": answer}), nil
}

// fill returns With, and a text of the given size as Field.
func (b *Behaviour) fill() (json.RawMessage, error) {
	out := map[string]any{}
	if len(b.With) > 0 {
		d := json.NewDecoder(bytes.NewReader(b.With))
		d.UseNumber()
		if err := d.Decode(&out); err != nil {
			return nil, fmt.Errorf("with of the case: %w", err)
		}
	}
	out[b.Field] = strings.Repeat("x", b.Bytes)
	return encoded(out), nil
}

// measure applies a measure to each argument.
func measure(args json.RawMessage, of func(any) int) (json.RawMessage, error) {
	values := map[string]any{}
	if err := json.Unmarshal(args, &values); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	out := map[string]int{}
	for name, v := range values {
		out[name] = of(v)
	}
	return encoded(out), nil
}

// size returns the length of a text, list or object, 0 for anything else.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

// levels returns how many lists and objects contain each other, at most.
func levels(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, in := range v {
			deepest = max(deepest, levels(in))
		}
	case map[string]any:
		for in := range maps.Values(v) {
			deepest = max(deepest, levels(in))
		}
	default:
		return 0
	}
	return deepest + 1
}

// publish publishes another turn of the same chat, whose data are the arguments, and returns its response.
func (e *entered) publish(ctx context.Context) (json.RawMessage, error) {
	call := tool.Info(ctx)
	r, err := e.client.Do(ctx, &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: call.App, Chat: call.Chat, Turn: call.Turn + "-" + call.Tool},
		Workflow: call.Workflow, Agent: call.Agent, Data: e.args,
	})
	if err != nil {
		return nil, err
	}
	return encoded(map[string]any{"success": r.Success, "code": r.Code, "payload": r.Payload}), nil
}
