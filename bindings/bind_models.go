package bindings

import (
	"fmt"
	"maps"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/diag"
)

// compileModels compiles each model; an error disables only the model that has it.
func (b *binder) compileModels() {
	byName := make(map[string]modelEntry, len(b.manifest.models))
	var defs []model.Definition
	for _, e := range b.manifest.models {
		byName[e.name] = e
		if e.alias == nil {
			b.w.models = append(b.w.models, e.name)
		}
		if e.schema == nil {
			defs = append(defs, model.Definition{Name: e.name, Fields: e.fields, Open: b.open, Alias: e.alias})
			continue
		}
		compiled, err := model.CompileSchema(e.name, e.schema)
		if b.refused(e, schemaProblems(compiled, err)); err == nil && b.broken[e.name] == "" {
			b.models[e.name] = compiled
		}
	}
	compiled, problems := model.CompileMozaiks(defs)
	maps.Copy(b.models, compiled)
	for _, p := range problems {
		e := byName[p.Model]
		at := e.at
		top, _, _ := strings.Cut(p.Field, ".")
		if line := e.lines[top]; line > 0 {
			at.line = line
		}
		what := "model " + p.Model
		if p.Field != "" {
			what = fmt.Sprintf("field %s of %s", p.Field, what)
		}
		b.add(p.Severity, at, "bad_model", what+": "+p.Message, p.Fix)
		if _, usable := b.models[p.Model]; !usable && b.broken[p.Model] == "" {
			b.broken[p.Model] = fmt.Sprintf("%s: %s: %s", at, what, p.Message)
		}
	}
}

// refused reports each problem of a schema at its line. An error makes its model unusable.
func (b *binder) refused(e modelEntry, problems []model.Problem) {
	for _, p := range problems {
		at, message := placeOf(p, e.source, e.at)
		if p.Severity == diag.SeverityWarning {
			b.warnf(at, "bad_model", p.Fix, "model %s: %s", e.name, message)
			continue
		}
		b.errorf(at, "bad_model", p.Fix, "model %s cannot be used: %s", e.name, message)
		if b.broken[e.name] == "" {
			b.broken[e.name] = fmt.Sprintf("%s: %s; %s", at, message, p.Fix)
		}
	}
}

func (b *binder) modelProblem(t *toolEntry, mdl string) string {
	if b.models[mdl] != nil {
		return ""
	}
	if why := b.broken[mdl]; why != "" {
		return fmt.Sprintf("model %s cannot be used (%s)", quoted(mdl), why)
	}
	if t.model == mdl {
		b.errorf(t.at, "unknown_model", b.modelFix(mdl), "tool %s names the unknown model %s", t.name, quoted(mdl))
	}
	return fmt.Sprintf("%s: model %s is not defined; %s", t.at, quoted(mdl), b.modelFix(mdl))
}

// modelFix returns what to do about a model that does not exist.
func (b *binder) modelFix(name string) string {
	return thereOr(name, b.w.models, "define it under models")
}
