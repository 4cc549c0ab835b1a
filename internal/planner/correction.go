package planner

import (
	"encoding/json"
	"strings"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Bounds of a correction, in bytes.
const (
	maxOutput = 128 << 10 // of the output that is to be corrected; a longer one is cut
	maxSchema = 64 << 10  // a larger schema is omitted
	// MaxCorrection bounds the result of an agent that corrects an output.
	MaxCorrection = 1 << 20
)

// Correction asks an agent to correct an output that cannot be used.
type Correction struct {
	Agent, Model string          // whose output it is, and what it has to fit
	Schema       json.RawMessage // JSON Schema of the model, nil if it has none
	Output       any             // as the agent gave it: a text, or a value tree
	Feedback     string          // what is wrong with it
}

// Request returns the request: the output as the message of the agent, and what is wrong with it as the message after it.
func (c *Correction) Request() Request {
	output, ok := c.Output.(string)
	if ok {
		if answer, open := agentjson.WithoutReasoning(output); !open {
			output = strings.TrimSpace(answer)
		}
	} else {
		output, _ = encode(c.Output)
	}
	output, feedback := cut(output, maxOutput), cut(c.Feedback, maxFeedback)
	r := Request{Round: 1, Data: map[string]any{"agent": c.Agent, "model": c.Model, "output": output, "feedback": feedback}}
	head, _ := encode(map[string]any{"agent": c.Agent, "model": c.Model})
	r.System, r.Temperature, r.Whole = correctInstructions, zero(), true
	r.Messages = append(user(head), tools.Message{Role: "assistant", Content: output}, tools.Message{Role: "user", Content: feedback})
	if len(c.Schema) <= maxSchema {
		r.Schema = c.Schema
	}
	return r
}

// ReadCorrection reads the result of an agent that corrects an output: a [tools.Completion], a text, or the output itself as a value
// tree. The content is a text or a value tree.
func ReadCorrection(result json.RawMessage) (content any, finishReason string, usage tools.Usage, err error) {
	value, err := events.Decode(result)
	if err != nil {
		return nil, "", tools.Usage{}, err
	}
	object, _ := value.(map[string]any)
	text, isText := object["content"].(string)
	if _, reported := object["finish_reason"]; !isText || !reported {
		return value, "", tools.Usage{}, nil
	}
	var c tools.Completion
	if err := json.Unmarshal(result, &c); err != nil { // of an agent that counts in another way
		c.Usage = tools.Usage{}
	}
	c.Usage.Prompt, c.Usage.Completion = max(c.Usage.Prompt, 0), max(c.Usage.Completion, 0)
	return text, c.FinishReason, c.Usage, nil
}
