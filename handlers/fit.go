package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/throttle"
)

// maxSchemas is how many compiled schemas of questions a worker remembers.
const maxSchemas = 256

// schemas compiles the schemas of questions and remembers the last ones. The zero value is
// usable, and safe for concurrent use.
type schemas struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*model.Value
}

// compile compiles a schema within the bounds of the models of manifests.
func (s *schemas) compile(schema []byte) (*model.Value, error) {
	sum := sha256.Sum256(schema)
	s.mu.Lock()
	v := s.known[sum]
	s.mu.Unlock()
	if v != nil {
		return v, nil
	}
	v, err := model.CompileValue("answer", schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of the answer: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSchemas { // a tool asks the same question again and again; few have more
		s.known = map[[sha256.Size]byte]*model.Value{}
	}
	s.known[sum] = v
	return v, nil
}

// CheckSchema reports what is wrong with the JSON Schema that an answer shall fit: a question
// with such a schema is not asked, because nobody could answer it. Nil takes any JSON value.
func (h *Handlers) CheckSchema(schema json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	tree, err := events.Decode(schema)
	if err == nil {
		_, err = h.fitting(tree)
	}
	if err != nil {
		return &events.Error{Code: events.CodeToolError, Op: "ask", Msg: "the schema of the answer cannot be used: " + logError(err), Err: err}
	}
	return nil
}

// fitting returns what holds answers against a schema, nil for no schema.
func (h *Handlers) fitting(schema any) (*model.Value, error) {
	if schema == nil {
		return nil, nil //nolint:nilnil // no schema is no fault
	}
	text, err := events.AppendJSON(nil, schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of the answer: %w", err)
	}
	return h.schemas.compile(text)
}

// content is an answer as it is stored.
type content struct {
	digest string // of what was sent
	data   []byte // JSON of what the tool is handed: coerced and completed by the schema
	unfit  *unfit // why it is not taken, nil if it fits
}

// contentOf holds a value against the schema of its question.
func (h *Handlers) contentOf(q *inquiry, value any) (content, error) {
	data, err := events.AppendJSON(nil, value)
	if err != nil {
		return content{}, err
	}
	sum := sha256.Sum256(data)
	c := content{digest: hex.EncodeToString(sum[:]), data: data}
	fit, err := h.fitting(q.Answer.Schema)
	switch {
	case err != nil: // it was compiled when the question was asked
		h.lines.Log(context.Background(), h.Logger, h.Now(), "schema", q.key.App, throttle.Several, slog.LevelError,
			"the schema of a question cannot be used (any more)", "question", cut(q.ToolCallID), "err", logError(err))
		c.unfit = &unfit{code: events.AnswerInvalid, text: "The answer cannot be checked: the schema of the question cannot be used."}
		return c, nil
	case fit == nil:
		c.unfit = textless(q, value)
		return c, nil
	}
	out, changed, faults := fit.Conform(value)
	switch {
	case len(faults) > 0:
		if q.Secret {
			faults = unfitSecret(faults, q.Answer.Schema, value)
		}
		c.unfit = &unfit{code: events.AnswerInvalid, text: "The answer does not fit the question (" + plural(len(faults), "fault") + ").", faults: faults}
	case changed:
		if c.data, err = events.AppendJSON(nil, out); err != nil {
			return content{}, err
		}
	}
	return c, nil
}

// textless reports that a request for a text is answered with a value that has none, nil if it is
// not.
func textless(q *inquiry, value any) *unfit {
	if q.InteractionType != events.InteractionInputRequest {
		return nil
	}
	if _, ok := events.InputText(value); ok {
		return nil
	}
	return &unfit{code: events.AnswerInvalid, text: "The question asks for a text, and the answer has none: send a JSON text, or an object with one as text."}
}
