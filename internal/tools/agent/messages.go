package agent

import (
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// inputSchema is what the arguments may be: anything.
const inputSchema = `{"type":"object","properties":{"prompt":{"type":"string"},"messages":{"type":"array","items":{"type":"object",` +
	`"properties":{"role":{"enum":["user","assistant"]},"content":{"type":"string"}},"required":["role","content"]}}}}`

// maxMessages bounds a conversation.
const maxMessages = 1000

// ask is the request for a prompt of the product. Its system text follows the manifest's.
func (t *Tool) ask(p *tools.Prompt) Ask {
	system := strings.TrimSpace(t.t.Completions.System + "\n\n" + p.System)
	return Ask{Messages: withSystem(system, p.Messages), Schema: p.Schema, Temperature: p.Temperature}
}

// withSystem is a conversation that begins with a system text, if there is one.
func withSystem(system string, conversation []Message) []Message {
	if system == "" {
		return conversation
	}
	return append([]Message{{Role: "system", Content: system}}, conversation...)
}

// messages makes a conversation of the arguments: prompt alone is the message of the user, messages
// alone are the conversation so far, and any others are the message of the user, as JSON. The
// system message comes only from the manifest: arguments come from models and people.
func messages(op string, call *tools.Call) ([]Message, error) {
	if len(call.Args) == 1 {
		if prompt, ok := call.Args["prompt"].(string); ok {
			return []Message{{Role: "user", Content: prompt}}, nil
		}
		if list, ok := call.Args["messages"].([]any); ok {
			return conversation(op, list)
		}
	}
	args, err := call.ArgsFor(op, nil)
	if err != nil {
		return nil, err
	}
	return []Message{{Role: "user", Content: string(args)}}, nil
}

func conversation(op string, list []any) ([]Message, error) {
	bad := func(path, why string) ([]Message, error) {
		return nil, &events.Error{Code: events.CodeBadArgs, Op: op, Msg: "bad_args:" + path + ": " + why}
	}
	if len(list) == 0 || len(list) > maxMessages {
		return bad("/messages", fmt.Sprintf("expected 1 to %d messages", maxMessages))
	}
	conversation := make([]Message, 0, len(list))
	for i, one := range list {
		path := fmt.Sprintf("/messages/%d", i)
		m, ok := one.(map[string]any)
		if !ok {
			return bad(path, "expected an object with role and content")
		}
		role, _ := m["role"].(string)
		content, ok := m["content"].(string)
		switch {
		case role != "user" && role != "assistant":
			return bad(path+"/role", "expected user or assistant")
		case !ok:
			return bad(path+"/content", "expected a text")
		}
		conversation = append(conversation, Message{Role: role, Content: content})
	}
	return conversation, nil
}
