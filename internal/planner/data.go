package planner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/tools"
)

// Bounds of the data in a request, in bytes. A request has them twice, as values and as text, and still fits a message of
// NATS (1 MiB by default).
const (
	maxInput       = 128 << 10 // prompt and bindings
	maxTools       = 128 << 10 // all tools
	maxDescription = 1 << 10   // of one tool
)

// Tool is what an agent learns of a tool that its program may call.
type Tool struct {
	Name        string
	Description string
	Effect      events.Effect
	// Arguments and Output are JSON Schemas, nil if none is declared.
	Arguments, Output json.RawMessage
}

// data returns the data of the request, as a value tree and as JSON. What the user sends is never cut: if it does not
// fit, that is an error. Schemas that do not fit are omitted, from the largest tools on, and the data reports it.
func (p *Planner) data() (data map[string]any, text string, err error) {
	limits := p.Options.Limits.WithDefaults()
	list := "tools"
	input := map[string]any{"request": p.Input.Prompt, "limits": map[string]any{"calls": number(limits.Calls)}}
	if p.Kind == flow.KindOrchestration {
		list = "agents"
		bindings := map[string]any{}
		if p.Input.Bindings != nil {
			bindings = p.Input.Bindings
		}
		input["bindings"] = bindings
		parallel := limits.Parallel
		if p.Input.Parallel > 0 {
			parallel = min(parallel, p.Input.Parallel)
		}
		input["limits"] = map[string]any{"calls": number(limits.Calls), "steps": number(limits.Steps), "parallel": number(parallel)}
	}
	text, ok := encode(input)
	switch {
	case !ok:
		return nil, "", &events.Error{Code: events.CodeBadArgs, Op: opPlan, Msg: "the prompt and its bindings have no JSON form within the limits of events"}
	case len(text) > maxInput:
		return nil, "", tooLarge("the prompt and its bindings have %d bytes; the limit is %d: send references to large values", len(text), maxInput)
	}
	if input[list], err = describe(p.Tools); err != nil {
		return nil, "", err
	}
	if text, ok = encode(input); !ok {
		return nil, "", &events.Error{Code: events.CodeToolError, Op: opPlan, Msg: "the descriptions of the tools have no JSON form"}
	}
	return input, text, nil
}

// opPlan is the operation in errors.
const opPlan = "plan"

func tooLarge(format string, args ...any) error {
	return &events.Error{Code: events.CodeTooLarge, Op: opPlan, Msg: fmt.Sprintf(format, args...)}
}

// describe returns the tools as values, in order.
func describe(list []Tool) ([]any, error) {
	described, sizes, total := make([]any, len(list)), make([]int, len(list)), 0
	for i := range list {
		described[i], sizes[i] = list[i].described()
		total += sizes[i]
	}
	largest := make([]int, len(list))
	for i := range largest {
		largest[i] = i
	}
	slices.SortStableFunc(largest, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, i := range largest {
		if total <= maxTools {
			break
		}
		total -= sizes[i]
		described[i], sizes[i] = list[i].named()
		total += sizes[i]
	}
	if total > maxTools {
		return nil, tooLarge("the names and descriptions of %d tools have %d bytes; the limit is %d: list the tools of programs in uses", len(list), total, maxTools)
	}
	return described, nil
}

// described is a tool with its schemas, and its size.
func (t *Tool) described() (value map[string]any, size int) {
	value, _ = t.named()
	delete(value, "schemas_omitted")
	for name, schema := range map[string]json.RawMessage{"arguments": t.Arguments, "output": t.Output} {
		if schema == nil {
			continue
		}
		tree, err := events.Decode(schema)
		if err != nil {
			return t.named()
		}
		value[name] = tree
	}
	text, ok := encode([]any{[]any{[]any{[]any{value}}}}) // as deep as in the arguments of a call
	if !ok {
		return t.named()
	}
	return value, len(text)
}

// named is a tool without its schemas, and its size.
func (t *Tool) named() (value map[string]any, size int) {
	value = map[string]any{"name": t.Name, "schemas_omitted": true}
	if t.Description != "" {
		value["description"] = excerpt.Line(t.Description, maxDescription)
	}
	if t.Effect != "" {
		value["effect"] = string(t.Effect)
	}
	text, _ := encode(value)
	return value, len(text)
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// user is a conversation of one message.
func user(text string) []tools.Message { return []tools.Message{{Role: "user", Content: text}} }
