package agentjson_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/internal/test/repaircases"
)

func TestModelOutputsHaveTheResultsOfTheCases(t *testing.T) {
	t.Parallel()
	for _, c := range repaircases.Read(t, "../testdata/agent-messages/json_repair.jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			o := agentjson.Options{FinishReason: c.FinishReason}
			if c.Schema != nil {
				var m schema
				require.NoError(t, json.Unmarshal(c.Schema, &m))
				o.Fits = m.fits
			}
			found, err := agentjson.ExtractContent(c.Content, o)
			got := &repaircases.Outcome{
				Value: found.JSON, Repairs: repaircases.Texts(found.Repairs),
				Around: repaircases.Texts(found.Around), Warnings: repaircases.Texts(found.Warnings),
			}
			if e := new(agentjson.Error); errors.As(err, &e) {
				got.Code, got.Feedback = string(e.Code), e.Feedback()
			}
			c.Check(t, got)
		})
	}
}

// schema is what the schemas of the cases have: required names, and types.
type schema struct {
	Required   []string `json:"required"`
	Properties map[string]struct {
		Type string `json:"type"`
	} `json:"properties"`
}

func (m *schema) fits(object map[string]any) bool {
	for _, name := range m.Required {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	for name, p := range m.Properties {
		if v, ok := object[name]; ok && p.Type != "" && p.Type != typeOf(v) {
			return false
		}
	}
	return true
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case json.Number:
		if _, err := v.Int64(); err != nil {
			return "number"
		}
		return "integer"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	default:
		return "null"
	}
}
