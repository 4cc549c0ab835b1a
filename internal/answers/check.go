package answers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
)

// Content is an answer as it is stored.
type Content struct {
	Digest  string        // of what was sent
	Data    []byte        // JSON that the tool receives: coerced and completed by the schema
	Invalid *InvalidError // why the answer is refused, nil if it is valid
	// SchemaErr is why the schema of the question cannot be used, although it was compiled when the question was asked.
	// The answer is invalid then.
	SchemaErr error
}

// InvalidError is why an answer to an open question is refused.
type InvalidError struct {
	Code       events.AnswerCode
	Text       string
	Violations []model.Violation
}

// Error implements error.
func (i *InvalidError) Error() string { return i.Text }

// Check validates a value against the schema of its question. The error is of a value that has no JSON form.
func (s *Schemas) Check(q *events.ToolCall, value any) (Content, error) {
	data, err := events.AppendJSON(nil, value)
	if err != nil {
		return Content{}, fmt.Errorf("encode the answer: %w", err)
	}
	sum := sha256.Sum256(data)
	c := Content{Digest: hex.EncodeToString(sum[:]), Data: data}
	schema, err := s.of(q.Answer.Schema)
	switch {
	case err != nil:
		c.SchemaErr = err
		c.Invalid = &InvalidError{Code: events.AnswerInvalid, Text: "The answer cannot be checked: the schema of the question cannot be used."}
		return c, nil //nolint:nilerr // SchemaErr has it: the answer is invalid, and the caller logs why
	case schema == nil:
		c.Invalid = textMissing(q, value)
		return c, nil
	}
	out, changed, violations := schema.Conform(value)
	switch {
	case len(violations) > 0:
		if q.Secret {
			violations = redactViolations(violations, q.Answer.Schema, value)
		}
		c.Invalid = &InvalidError{Code: events.AnswerInvalid, Text: fmt.Sprintf("The answer does not match the schema of the question (%s).", plural.Of(len(violations), "violation")), Violations: violations}
	case changed:
		if c.Data, err = events.AppendJSON(nil, out); err != nil {
			return Content{}, fmt.Errorf("encode the answer: %w", err)
		}
	}
	return c, nil
}

// textMissing refuses an answer to a request for a text that holds none. It returns nil for any other.
func textMissing(q *events.ToolCall, value any) *InvalidError {
	if q.InteractionType != events.InteractionInputRequest {
		return nil
	}
	if _, ok := events.InputText(value); ok {
		return nil
	}
	return &InvalidError{Code: events.AnswerInvalid, Text: "The question asks for a text, and the answer has none: send a JSON text, or an object with one as text."}
}
