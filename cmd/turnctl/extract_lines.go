package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// maxLine bounds a line of --jsonl in bytes: a text of the largest size all of whose characters are escaped, and a schema.
const maxLine = 8 << 20

// badLine is the error of a line that is not of the form of the help.
const badLine agentjson.Code = "bad_line"

// extractLines reads one text a line and writes one result a line.
func (a *app) extractLines(want *wanted) error {
	in := bufio.NewReaderSize(a.stdin, 1<<16)
	var out bytes.Buffer
	schemas := schemaCache{}
	good := true
	for n := 1; ; n++ {
		line, whole, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("extract: read line %d of standard input: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			result := &extracted{Error: agentjson.TooLarge, Message: fmt.Sprintf("line %d has over %d bytes: send a shorter text", n, maxLine)}
			if whole {
				result = schemas.extract(line, n, want)
			}
			good = good && result.good()
			if err := cli.WriteJSON(&out, result, ""); err != nil {
				return fmt.Errorf("extract: %w", err)
			}
		}
		const enough = 1 << 16
		if ended := err != nil; ended || out.Len() > enough || in.Buffered() == 0 {
			if _, err := out.WriteTo(a.stdout); err != nil {
				return fmt.Errorf("extract: write the output: %w", err)
			}
			if ended && good {
				return nil
			} else if ended {
				return cli.ErrReported
			}
		}
	}
}

// readLine reads a line. Of one that is too long, the rest is passed and whole is false. The error is the one of the
// reader, and the line may be the last one.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			whole = false
		}
		if whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err //nolint:wrapcheck // the caller adds the line
		}
	}
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
