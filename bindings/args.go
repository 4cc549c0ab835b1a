package bindings

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/oneturn/oneturn/events"
)

// contextParameter is the parameter that receives the context container.
const contextParameter = "context_variables"

// parameters is the mapping from field names to a function's parameters. Names match when they
// are equal after removing everything but letters and digits and lower-casing:
// ModuleAgents → module_agents. A parameter of exactly the field's name is preferred.
type parameters struct {
	names    []string          // those that take keyword arguments, without context_variables
	byNorm   map[string]string // normalised → name
	required []string          // without default, positional-only ones included
	fields   []string          // fields of the model in manifest order; nil without a model
}

func newParameters(params []Param, fields []string) (parameters, bool) {
	p := parameters{byNorm: make(map[string]string, len(params)), fields: fields}
	acceptsContext := false
	for i, param := range params {
		if i == 0 && param.Name == "self" {
			continue
		}
		switch param.Kind {
		case Positional, KeywordOnly:
			if param.Name == contextParameter {
				acceptsContext = true
				continue
			}
			p.names = append(p.names, param.Name)
			p.byNorm[normalise(param.Name)] = param.Name
		case PositionalOnly:
		case VarPositional, VarKeyword:
			continue // take what has no name of its own; nothing is ever passed to them
		}
		if !param.HasDefault {
			p.required = append(p.required, param.Name)
		}
	}
	return p, acceptsContext
}

// match returns the parameter for a field, "" if there is none.
func (p *parameters) match(field string) string {
	if slices.Contains(p.names, field) {
		return field
	}
	if norm := normalise(field); norm != "" {
		return p.byNorm[norm]
	}
	return ""
}

// gaps lists required parameters that neither the model's fields nor the turn can fill, and
// those that only fields can fill that the data may lack.
func (p *parameters) gaps(optional []string) (unfilled, uncertain []string) {
	const sometimes, always = 1, 2
	filled := make(map[string]int, len(p.names))
	fill := func(field string, how int) {
		name := p.match(field)
		filled[name] = max(filled[name], how)
	}
	for _, f := range p.fields {
		if slices.Contains(optional, f) {
			fill(f, sometimes)
		} else {
			fill(f, always)
		}
	}
	for _, v := range injected(&events.StructuredOutputReady{}) {
		fill(v.name, always)
	}
	for _, r := range p.required {
		switch filled[r] {
		case always:
		case sometimes:
			uncertain = append(uncertain, r)
		default:
			unfilled = append(unfilled, r)
		}
	}
	return unfilled, uncertain
}

// Args maps checked data to the tool's arguments. Fields go to the parameters they match, in
// the order of the model's fields; fields without parameter are dropped; parameters that are
// still empty and ask for chat_id, app_id, enterprise_id, workflow_name,
// turn_idempotency_key, agent_name or agent get them from the turn. The context container is
// never among them. Tools that are not Python, and a Python tool whose signature is not known, get
// data as it is. data is not modified.
func (b *Binding) Args(data map[string]any, t *events.StructuredOutputReady) map[string]any {
	if b.ArgsAreData() {
		return data
	}
	p := &b.parameters
	args := make(map[string]any, len(p.names))
	known := 0
	for _, f := range p.fields {
		v, ok := data[f]
		if !ok {
			continue
		}
		known++
		if name := p.match(f); name != "" {
			args[name] = v
		}
	}
	if known < len(data) { // a model that allows more than it lists, or no model
		for _, f := range slices.Sorted(maps.Keys(data)) {
			name := p.match(f)
			if _, taken := args[name]; !taken && name != "" {
				args[name] = data[f]
			}
		}
	}
	for _, v := range injected(t) {
		name := p.match(v.name)
		if _, ok := args[name]; !ok && name != "" && v.value != "" {
			args[name] = v.value
		}
	}
	return args
}

// ArgsAreData reports whether [Binding.Args] returns data as it is.
func (b *Binding) ArgsAreData() bool { return b.Kind != KindPython || b.SignatureUnknown }

type injection struct{ name, value string }

// injected lists what a turn offers to parameters that the data leaves empty.
func injected(t *events.StructuredOutputReady) [7]injection {
	return [...]injection{
		{"chat_id", t.Chat},
		{"app_id", t.App},
		{enterpriseID, t.App},
		{"workflow_name", t.Workflow},
		{"turn_idempotency_key", t.Turn},
		{"agent_name", t.Agent},
		{"agent", t.Agent},
	}
}

// Context returns the contents of the tool's context container: vars, and the turn's own chat_id,
// app_id, workflow_name, turn_idempotency_key, agent_name and, if it is known, user_id, which win
// over variables of these names. enterprise_id equals app_id where the workflow's files or the event
// use that name, as MozaiksAI had it before 2026. vars is not modified.
func (b *Binding) Context(t *events.StructuredOutputReady, vars map[string]any) map[string]any {
	const own = 7
	c := make(map[string]any, len(vars)+own)
	maps.Copy(c, vars)
	c["chat_id"] = t.Chat
	c["app_id"] = t.App
	c["workflow_name"] = t.Workflow
	c["turn_idempotency_key"] = t.Turn
	c["agent_name"] = t.Agent
	if t.UserID != "" {
		c["user_id"] = t.UserID
	}
	if b.Enterprise || t.Enterprise {
		c[enterpriseID] = t.App
	}
	return c
}

// normalise removes everything but letters and digits and lower-cases the rest.
func normalise(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
