package answers

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// For returns the check of the answers to a question of a tool that runs without a turn, by the schema as
// a worker does: it returns a valid answer as the tool gets it. Unlike the result that a worker sends, its error names each
// violation. An answer without a text to a question for a text is not refused: a tool has to take what was stored before.
// The error of For is of a schema that cannot be used.
func For(q *tools.Question) (check func(json.RawMessage) (json.RawMessage, error), err error) {
	var s Schemas
	if err := s.CheckSchema(q.Schema); err != nil {
		return nil, err
	}
	asked := &events.ToolCall{InteractionType: events.InteractionUITool, Answer: &events.AnswerTo{}}
	if len(q.Schema) > 0 {
		if asked.Answer.Schema, err = events.Decode(q.Schema); err != nil {
			return nil, err
		}
	}
	return func(answer json.RawMessage) (json.RawMessage, error) {
		value, err := events.Decode(answer)
		if err != nil {
			return nil, err
		}
		c, err := s.Check(asked, value)
		switch {
		case err != nil:
			return nil, err
		case c.Invalid == nil:
			return c.Data, nil
		case len(c.Invalid.Violations) == 0:
			return nil, c.Invalid
		}
		texts := make([]string, len(c.Invalid.Violations))
		for i, v := range c.Invalid.Violations {
			texts[i] = strings.TrimSuffix(v.String(), ".")
		}
		return nil, fmt.Errorf("does not match the schema: %s", strings.Join(texts, "; "))
	}, nil
}
