package callhost

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Answers returns the check of the answers to a question, by the rules of a worker: it returns a valid answer as
// the tool gets it, coerced and completed by the schema. The error is of a schema that cannot be used.
func Answers(q *tools.Question) (check func(json.RawMessage) (json.RawMessage, error), err error) {
	if len(q.Schema) == 0 {
		return func(answer json.RawMessage) (json.RawMessage, error) { return answer, nil }, nil
	}
	schema, err := model.CompileValue("answer", q.Schema)
	if err != nil {
		return nil, &events.Error{Code: events.CodeToolError, Op: "ask", Msg: "the schema of the answer cannot be used: " + events.LogText(err), Err: err}
	}
	return func(answer json.RawMessage) (json.RawMessage, error) {
		data, violations, err := schema.ConformJSON(answer)
		if err != nil || len(violations) == 0 {
			return data, err
		}
		texts := make([]string, len(violations))
		for i, v := range violations {
			texts[i] = strings.TrimSuffix(v.String(), ".")
		}
		return nil, fmt.Errorf("does not match the schema: %s", strings.Join(texts, "; "))
	}, nil
}
