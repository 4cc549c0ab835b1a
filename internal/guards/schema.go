package guards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools"
)

// schema refuses what does not fit a JSON Schema.
type schema struct{ model *model.Value }

func newSchema(on string, text json.RawMessage) (check, error) {
	fits, err := model.CompileValue("guard on "+on, text)
	if err != nil {
		return nil, schemaProblem(err)
	}
	for _, p := range fits.Problems() {
		if p.Severity == diag.SeverityError {
			return nil, refused("schema", p.Fix, "at %s: %s", p.Field, p.Message)
		}
	}
	return schema{fits}, nil
}

// schemaProblem names the first place in the schema that is wrong.
func schemaProblem(err error) error {
	var wrong *model.SchemaError
	if !errors.As(err, &wrong) || len(wrong.Problems) == 0 {
		return refused("schema", "write JSON Schema 2020-12", "%s", err.Error())
	}
	first := wrong.Problems[0]
	text := first.Message
	if first.Field != "" {
		text = "at " + first.Field + ": " + text
	}
	if more := len(wrong.Problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return refused("schema", first.Fix, "%s", text)
}

func (s schema) refuse(_ context.Context, _ *tools.Call, v *value) error {
	tree, err := v.tree()
	if err != nil {
		return err
	}
	violations := s.model.Violations(tree)
	if len(violations) == 0 {
		return nil
	}
	reason := v.name + " must not go through: " + violations[0].String()
	if more := len(violations) - 1; more > 0 {
		reason += fmt.Sprintf(" (and %d more)", more)
	}
	return &Refusal{Reason: reason}
}
