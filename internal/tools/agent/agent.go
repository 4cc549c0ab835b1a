package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"time"

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
type Usage = tools.Usage

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
	ask, to, output := Ask{Schema: t.o.Output}, t.model, t.o.Output
	if call.Prompt != nil {
		ask, to, output = t.ask(call.Prompt), t.prompt, nil
	} else {
		var err error
		if ask.Messages, err = messages(op, call); err != nil {
			return tools.Result{}, err
		}
		ask.Messages = withSystem(t.t.Completions.System, ask.Messages)
	}
	start := time.Now()
	answer, err := to.Complete(ctx, call, ask)
	if err != nil {
		return tools.Result{}, err
	}
	t.o.Logger.DebugContext(ctx, "a model answered", "tool", call.Name, "call", call.CallID, "model", t.t.Completions.Model,
		"finish", t.client.Clean(answer.Finish), "prompt_tokens", answer.Usage.Prompt, "completion_tokens", answer.Usage.Completion,
		"bytes", len(answer.Content), "duration", time.Since(start))
	if call.Prompt != nil && call.Prompt.Whole {
		value, err := t.whole(op, answer)
		return tools.Result{Value: value}, err
	}
	if call.Prompt != nil && isBlank(answer) { // whether to ask again decides who has asked
		return tools.Result{Value: json.RawMessage(`""`)}, nil
	}
	value, err := t.result(op, answer, output)
	return tools.Result{Value: value}, err
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
