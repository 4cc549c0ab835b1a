package main

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// badLine is the error of a line that is not of the form of the help.
const badLine = "bad_line"

// extractLines reads one text a line and writes one result a line.
func (a *app) extractLines(want *wanted) error {
	schemas := schemaCache{}
	good := true
	err := a.eachLine("extract", func(line []byte, n int, whole bool) any {
		result := &extracted{Error: agentjson.TooLarge, Message: fmt.Sprintf("line %d has over %d bytes: send a shorter text", n, maxLine)}
		if whole {
			result = schemas.extract(line, n, want)
		}
		good = good && result.good()
		return result
	})
	if err == nil && !good {
		return cli.ErrReported
	}
	return err
}

// inputLine is a line of the input.
type inputLine struct {
	Text         jsontext.Value `json:"text"`
	Schema       jsontext.Value `json:"schema"`
	FinishReason string         `json:"finish_reason"`
}

// schemaCache has the schema of the last line: texts of one agent usually come together.
type schemaCache struct {
	schema []byte
	want   *wanted
}

// extract returns the outcome for a line.
func (c *schemaCache) extract(text []byte, n int, want *wanted) *extracted {
	var line inputLine
	// Invalid UTF-8 is the error of a text, not of its line.
	if err := json.Unmarshal(text, &line, jsontext.AllowInvalidUTF8(true)); err != nil {
		return &extracted{Error: badLine, Message: fmt.Sprintf("line %d is not an object with a text: %s", n, clean(err.Error(), longestText))}
	}
	if line.Text == nil {
		return &extracted{Error: badLine, Message: fmt.Sprintf("line %d has no text: write {\"text\": \"…\"}", n)}
	}
	if line.Schema != nil && line.Schema.Kind() != 'n' {
		var err error
		if want, err = c.compile(line.Schema); err != nil {
			return &extracted{Error: badLine, Message: fmt.Sprintf("line %d: schema: %s", n, clean(err.Error(), longestText))}
		}
	}
	return extract([]byte(line.Text), line.FinishReason, want)
}

// compile returns what a schema wants. A rule that cannot be checked is left out; it is an error if nothing is left.
func (c *schemaCache) compile(schema jsontext.Value) (*wanted, error) {
	if bytes.Equal(schema, c.schema) {
		return c.want, nil
	}
	if _, err := model.Checkable([]byte(schema)); err != nil {
		return nil, fmt.Errorf("not a usable JSON Schema: %w", err)
	}
	v, _ := model.CompileExternalValue("schema", []byte(schema))
	c.schema, c.want = bytes.Clone(schema), &wanted{name: "schema", violations: func(object map[string]any) []model.Violation {
		return v.Violations(object)
	}}
	return c.want, nil
}
