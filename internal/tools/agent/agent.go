package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Ask is a conversation, and in which form it is to be continued.
type Ask struct {
	Messages    []Message
	Schema      json.RawMessage // of the answer; nil for text
	Temperature *float64        // unless the manifest sets one
}

// Message is one turn of a conversation.
type Message = tools.Message

// Answer is the answer of a model.
type Answer struct {
	Content string
	Refusal string // why it does not answer, "" if it does
	Finish  string // why it ended: stop, length, content_filter, …
	Usage   Usage
}

// Usage counts tokens, as the endpoint reports them.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// Options of a [Tool]. The zero value is usable.
type Options struct {
	Output    json.RawMessage // JSON Schema of the result; nil makes a string of the answer
	Logger    *slog.Logger    // logs at level Debug what a completion took; may be nil
	MaxAnswer int             // bytes of an answer; 0 = 10 MiB
	TLS       *tls.Config     // nil trusts the system's authorities
}

// Tool asks one model. It is safe for concurrent use.
type Tool struct {
	t      target.Agent
	o      Options
	model  *endpoint
	prompt *endpoint // the same endpoint for prompts of the product, whose form differs
	client *outbound.Client
}

var (
	_ tools.Describer = (*Tool)(nil)
	_ tools.Closer    = (*Tool)(nil)
)

// New makes the tool of an agent that is a completions endpoint. It does no I/O. Agents that are
// NATS services are tools of package natstool.
func New(t *target.Agent, o Options) *Tool {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	to := cmp.Or(t.Completions, &target.Completions{})
	tool := &Tool{t: target.Agent{ID: t.ID, Completions: to}, o: o}
	tool.client = outbound.New(outbound.Options{Network: to.Network, Headers: to.Headers, TLS: o.TLS, MaxBody: int64(o.MaxAnswer)})
	tool.model = &endpoint{to: *to, client: tool.client}
	tool.prompt = &endpoint{to: *to, client: tool.client}
	return tool
}

// Invoke implements [tools.Invoker].
func (t *Tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	op := "ask " + call.Name
	if err := outbound.Ended(ctx, op); err != nil {
		return tools.Result{}, err
	}
	ask, model, output := Ask{Schema: t.o.Output}, t.model, t.o.Output
	if call.Prompt != nil {
		ask, model, output = t.ask(call.Prompt), t.prompt, nil
	} else {
		var err error
		if ask.Messages, err = messages(op, call); err != nil {
			return tools.Result{}, err
		}
		ask.Messages = withSystem(t.t.Completions.System, ask.Messages)
	}
	start := time.Now()
	answer, err := model.Complete(ctx, call, ask)
	if err != nil {
		return tools.Result{}, err
	}
	t.o.Logger.DebugContext(ctx, "a model answered", "tool", call.Name, "call", call.CallID, "model", t.t.Completions.Model,
		"finish", t.client.Clean(answer.Finish), "prompt_tokens", answer.Usage.Prompt, "completion_tokens", answer.Usage.Completion,
		"bytes", len(answer.Content), "duration", time.Since(start))
	if call.Prompt != nil && isBlank(answer) { // whether to ask again decides who has asked
		return tools.Result{Value: json.RawMessage(`""`)}, nil
	}
	value, err := t.result(op, answer, output)
	return tools.Result{Value: value}, err
}

// isBlank reports whether a model has answered, and with nothing.
func isBlank(a Answer) bool {
	return strings.TrimSpace(a.Content) == "" && a.Refusal == "" && (a.Finish == "" || a.Finish == "stop")
}

// result is the answer of the model, as JSON: a string without an output schema.
func (t *Tool) result(op string, a Answer, output json.RawMessage) (json.RawMessage, error) {
	fail := func(code events.Code, msg string) (json.RawMessage, error) {
		return nil, &events.Error{Code: code, Op: op, Msg: msg}
	}
	content, open := a.Content, false
	if !jsontext.Value(content).IsValid() {
		content, open = events.WithoutReasoning(content)
	}
	if len(content) < len(a.Content) {
		content = strings.TrimSpace(content)
	}
	switch {
	case a.Refusal != "":
		return fail(events.CodeUserError, "the model refuses: "+t.client.Clean(a.Refusal))
	case a.Finish == "content_filter":
		return fail(events.CodeUserError, "the endpoint's filter has stopped the answer")
	case a.Finish == "error":
		return fail(events.CodeToolError, "the endpoint reports that the model failed while it answered")
	case a.Finish == "length":
		return fail(events.CodeToolError, fmt.Sprintf("the model's answer was cut off after %d tokens: raise max_tokens, or ask for less", a.Usage.Completion))
	case open:
		return fail(events.CodeToolError, "the model's answer ends inside its reasoning: raise max_tokens, or ask for less")
	case strings.TrimSpace(content) == "":
		return fail(events.CodeToolError, "the model's answer is empty")
	case output == nil:
		value, err := json.Marshal(t.client.Redact(content))
		if err != nil { // a string has a JSON form
			return fail(events.CodeToolError, "the model's answer has no JSON form")
		}
		return value, nil
	case jsontext.Value(content).IsValid():
		return t.client.RedactJSON(json.RawMessage(content)), nil
	}
	object, err := events.ExtractObject(content) // without a schema, models wrap it in prose
	if err == nil {
		value, err := events.AppendJSON(nil, object)
		if err == nil {
			return t.client.RedactJSON(value), nil
		}
	}
	return fail(events.CodeToolError, "the model's answer is not the JSON that was asked for: ask it again, for one JSON value that fits the schema and nothing else")
}

// Describe implements [tools.Describer].
func (t *Tool) Describe(context.Context) (tools.Description, error) {
	d, _ := t.Known()
	return d, nil
}

// Known implements [tools.Describer]: the manifest has the whole description.
func (t *Tool) Known() (tools.Description, bool) {
	return tools.Description{
		Text: "asks the model " + t.t.Completions.Model, Output: t.o.Output,
		Input:  json.RawMessage(inputSchema),
		Effect: string(events.EffectNone), Version: t.t.Completions.Model,
	}, true
}

// Close implements [tools.Closer]: it closes the connections that are idle.
func (t *Tool) Close(context.Context) error {
	t.client.Close()
	return nil
}
