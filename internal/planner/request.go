package planner

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/tools"
)

// Bounds of what a second request adds, in bytes.
const (
	maxPrevious = 16 << 10 // of the reply that is asked for again
	maxFeedback = 16 << 10
)

// Request is what an agent is asked.
type Request struct {
	tools.Prompt

	// Round is 1, or 2 if the agent is asked again. Requests of different rounds have different idempotency keys.
	Round int
	// Data is what the first user message contains, as a value tree, for agents that read JSON instead of texts.
	Data map[string]any
}

// Arguments returns the arguments of the call that asks an agent: `request` (the data), `system`, `messages`, and where
// they are set `schema` and `temperature`. An agent on NATS gets them as they are; a model gets the prompt.
func (r *Request) Arguments() map[string]any {
	messages := make([]any, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = map[string]any{"role": m.Role, "content": m.Content}
	}
	args := map[string]any{"request": r.Data, "system": r.System, "messages": messages}
	if r.Schema != nil {
		args["schema"] = r.Schema
	}
	if r.Temperature != nil {
		args["temperature"] = json.Number(strconv.FormatFloat(*r.Temperature, 'g', -1, 64))
	}
	return args
}

// Put makes a call ask the agent: it sets the arguments and the prompt, and distinguishes the idempotency keys of rounds.
func (r *Request) Put(call *tools.Call) {
	call.Args, call.ArgsJSON, call.Prompt = r.Arguments(), nil, &r.Prompt
	call.MapArgs, call.Fields = true, nil // a Python function gets what it has parameters for
	if r.Round > 1 && call.IdempotencyKey != "" {
		call.IdempotencyKey += "-" + strconv.Itoa(r.Round)
	}
}

// again is the request of the next round: the conversation so far, the reply and what is wrong with it.
func (r *Request) again(reply, feedback string) Request {
	next := *r
	next.Round++
	next.Messages = slices.Concat(r.Messages, []tools.Message{
		{Role: "assistant", Content: cut(reply, maxPrevious)}, {Role: "user", Content: cut(feedback, maxFeedback)},
	})
	return next
}

// cut bounds a text, and marks one that was cut. A text is never empty: endpoints refuse empty messages.
func cut(text string, most int) string {
	switch {
	case text == "":
		return "(empty)"
	case len(text) <= most:
		return excerpt.Of(text, most)
	}
	return excerpt.Of(text, most) + " … (cut; it had " + strconv.Itoa(len(text)) + " bytes)"
}

// zero is the temperature of requests for programs.
func zero() *float64 { return new(float64) }

// encode returns the canonical JSON of a value tree, false if it has none.
func encode(v any) (string, bool) {
	data, err := events.AppendJSON(nil, v)
	return string(data), err == nil
}
