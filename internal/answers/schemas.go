package answers

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// maxSchemas is how many compiled schemas of questions a worker remembers.
const maxSchemas = 256

// Schemas compiles the schemas of questions and remembers the last ones. The zero value is
// usable, and safe for concurrent use.
type Schemas struct {
	mu       sync.Mutex
	compiled map[[sha256.Size]byte]*model.Value
}

// CheckSchema reports what is wrong with the JSON Schema of an answer: a question with such a schema is not asked,
// because no answer would be valid. Nil takes any JSON value.
func (s *Schemas) CheckSchema(schema json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	tree, err := events.Decode(schema)
	if err == nil {
		_, err = s.of(tree)
	}
	if err != nil {
		return &events.Error{Code: events.CodeToolError, Op: "ask", Msg: "the schema of the answer cannot be used: " + events.LogText(err), Err: err}
	}
	return nil
}

// of returns the compiled form of a schema, nil for no schema.
func (s *Schemas) of(schema any) (*model.Value, error) {
	if schema == nil {
		return nil, nil //nolint:nilnil // a question without a schema takes any value
	}
	text, err := events.AppendJSON(nil, schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of the answer: %w", err)
	}
	return s.compile(text)
}

// compile compiles a schema within the bounds of the models of manifests.
func (s *Schemas) compile(schema []byte) (*model.Value, error) {
	sum := sha256.Sum256(schema)
	s.mu.Lock()
	v := s.compiled[sum]
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
	if s.compiled == nil || len(s.compiled) >= maxSchemas { // a tool asks the same question again and again; few have more
		s.compiled = map[[sha256.Size]byte]*model.Value{}
	}
	s.compiled[sum] = v
	return v, nil
}
