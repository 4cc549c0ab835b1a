package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree decodes JSON into a value tree.
func tree(t require.TestingT, text string) any {
	v, err := events.Decode([]byte(text))
	require.NoError(t, err, text)
	return v
}

// text is the canonical JSON of a value tree.
func text(t require.TestingT, v any) string {
	out, err := events.AppendJSON(nil, v)
	require.NoError(t, err)
	return string(out)
}

// define makes a definition from alternating names and specs in JSON.
func define(t require.TestingT, name string, fields ...string) model.Definition {
	def := model.Definition{Name: name}
	for i := 0; i < len(fields); i += 2 {
		spec, ok := tree(t, fields[i+1]).(map[string]any)
		require.True(t, ok)
		def.Fields = append(def.Fields, model.Field{Name: fields[i], Spec: spec})
	}
	return def
}

// compileOne compiles definitions that must all be free of errors and returns the named model.
func compileOne(t require.TestingT, name string, defs ...model.Definition) *model.Model {
	models, problems := model.CompileMozaiks(defs)
	for _, p := range problems {
		require.Equal(t, diag.SeverityWarning, p.Severity, "%+v", p)
	}
	require.Contains(t, models, name)
	return models[name]
}

// schema compiles a JSON Schema that must be good.
func schema(t require.TestingT, doc string) *model.Model {
	m, err := model.CompileSchema("M", json.RawMessage(doc))
	require.NoError(t, err)
	return m
}
