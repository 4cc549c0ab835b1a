package bindings

import (
	"maps"
	"slices"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// How the data of a turn becomes the arguments of its tool. The signature of a Python function is prepared once
// ([parameters]); [Binding.Args] then maps a turn: keys that are parameters, other spellings of them, what the
// turn itself knows, and the context container.

// contextParameter is the parameter that receives the context container.
const contextParameter = "context_variables"

// runtimeParameter is the **runtime of tools of September 2025: it receives what the turn knows, the
// context container included.
const runtimeParameter = "runtime"

// parameters is the mapping from field names to a function's parameters. Names match when their
// plain forms are equal ([model.Plain]): ModuleAgents → module_agents. A parameter of exactly the
// field's name is preferred; without one, a field that fits several is for none of them.
type parameters struct {
	names    []string            // those that take keyword arguments, without context_variables
	byPlain  map[string][]string // plain form → names
	required []string            // without default, positional-only ones included
	known    []ownName           // of names: the ones that the turn has a value for
	rivals   map[string]bool     // parameters that several declared fields fit, none by its very name
	runtime  bool                // has a **runtime
	rest     bool                // has another **kwargs, which gets what no parameter takes
	unnamed  []string            // positional-only ones, which nothing fills
}

// ownName is a name of something that the turn knows, and its plain form.
type ownName struct{ name, plain string }

func newParameters(params []Param) (parameters, bool) {
	p := parameters{byPlain: make(map[string][]string, len(params))}
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
			plain := model.Plain(param.Name)
			p.byPlain[plain] = append(p.byPlain[plain], param.Name)
		case PositionalOnly:
			p.unnamed = append(p.unnamed, param.Name)
		case VarKeyword:
			p.runtime = param.Name == runtimeParameter
			p.rest = !p.runtime
			continue
		case VarPositional:
			continue // takes what has no name; nothing is ever passed to it
		}
		if !param.HasDefault {
			p.required = append(p.required, param.Name)
		}
	}
	for _, name := range p.names {
		plain := model.Plain(name)
		if _, known := p.fact(&events.StructuredOutputReady{}, plain); known {
			p.known = append(p.known, ownName{name, plain})
		}
	}
	return p, acceptsContext || p.runtime
}

// fact gives what the turn knows under a name of this plain form. Only with a **runtime is the
// workflow part of that: elsewhere it is an ordinary name of data.
func (p *parameters) fact(t *events.StructuredOutputReady, plain string) (_ fact, known bool) {
	if plain == "WORKFLOW" && p.runtime {
		plain = "WORKFLOWNAME"
	}
	return fromTurn(t, plain)
}

// match returns the parameter for a field, "" if there is none, or several fit.
func (p *parameters) match(field string) string {
	fits := p.candidates(field)
	if len(fits) != 1 || p.rivals[fits[0]] && fits[0] != events.Name(field) {
		return ""
	}
	return fits[0]
}

// fits lists the parameters that a field may be for: the one of its name, else all of its plain form.
func (p *parameters) candidates(field string) []string {
	if name := events.Name(field); slices.Contains(p.names, name) {
		return []string{name}
	}
	if plain := model.Plain(field); plain != "" {
		return p.byPlain[plain]
	}
	return nil
}

// keeps reports whether a key goes to **kwargs under its own name.
func (p *parameters) keeps(key string) bool {
	return p.rest && key != contextParameter && key != "self" && len(p.candidates(key)) == 0 && !slices.Contains(p.unnamed, key)
}

// ambiguous describes fields that fit several parameters, and parameters that several fields fit,
// where none has the very name. It notes the latter, which nothing fills.
func (p *parameters) ambiguous(fields []string) []string {
	var all []string
	p.rivals = map[string]bool{}
	first := map[string]string{} // parameter → field that fits it by its plain form
	for _, field := range fields {
		fits := p.candidates(field)
		switch {
		case len(fits) > 1:
			all = append(all, "field "+field+" fits the parameters "+together(fits))
		case len(fits) == 0 || fits[0] == events.Name(field) || slices.Contains(fields, fits[0]):
		case first[fits[0]] != "":
			p.rivals[fits[0]] = true
			all = append(all, "parameter "+fits[0]+" fits the fields "+first[fits[0]]+" and "+field)
		default:
			first[fits[0]] = field
		}
	}
	return all
}

// gaps lists required parameters that neither the model's fields nor the turn can fill, and
// those that only fields can fill that the data may lack.
func (p *parameters) gaps(fields, optional []string) (unfilled, uncertain []string) {
	const sometimes, always = 1, 2
	filled := make(map[string]int, len(p.names))
	fill := func(field string, how int) {
		name := p.match(field)
		filled[name] = max(filled[name], how)
	}
	for _, f := range fields {
		if slices.Contains(optional, f) {
			fill(f, sometimes)
		} else {
			fill(f, always)
		}
	}
	for _, own := range p.known {
		if v, _ := p.fact(&events.StructuredOutputReady{}, own.plain); v.always {
			filled[own.name] = always
		}
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

// Unplaced lists the fields that the tool's input always has and no parameter of its Python function takes: whatever is
// given for them never reaches the input's check.
func (b *Binding) Unplaced() []string {
	if b.Input == nil || b.Kind != KindPython || b.SignatureUnknown || b.parameters.rest || b.parameters.runtime {
		return nil
	}
	optional := b.Input.Optional()
	return slices.DeleteFunc(b.Input.Fields(), func(f string) bool {
		return f == contextParameter || slices.Contains(optional, f) || b.parameters.match(f) != ""
	})
}

// Args maps checked data to the tool's arguments, and reports whether that is another map than data.
//
// Of what the model wrote, only fields that the model declares count unconditionally. A key that it
// does not declare has the turn's own value if it names something that the turn knows (app_id,
// chat_id, user_id, … in any spelling), and is dropped if the turn does not have that, or if it is
// another spelling of a declared field: no rule has checked it.
//
// Fields go to the parameters they match, in the order of the model's fields. Undeclared keys go to
// those that are still empty, with a model by the parameters' exact names only. Keys without
// parameter go to **kwargs under their own names, or are dropped. Parameters that no field has
// filled and that name something the turn knows get it from the turn, and **runtime gets all of it.
// The context container is never among the arguments. Tools that are not Python, and a Python tool whose signature is not
// known, get all keys under their own names. data is not modified.
func (b *Binding) Args(data map[string]any, t *events.StructuredOutputReady) (args map[string]any, mapped bool) {
	data, changed := b.declared.trusted(data, func(plain string) (fact, bool) { return b.parameters.fact(t, plain) })
	if b.Kind != KindPython || b.SignatureUnknown {
		return data, changed
	}
	p := &b.parameters
	args = make(map[string]any, len(p.names))
	known := 0
	for _, f := range b.declared.fields {
		v, ok := data[f]
		if !ok {
			continue
		}
		known++
		switch name := p.match(f); {
		case name != "" && (name == f || !has(data, name)):
			args[name] = v
		case p.keeps(f):
			args[f] = v
		}
	}
	if known < len(data) { // a model that allows more than it lists, or no model
		p.fill(args, data, b.Model != nil)
	}
	for _, own := range p.known {
		v, _ := p.fact(t, own.plain)
		if _, filled := args[own.name]; !filled && v.value != "" {
			args[own.name] = v.value
		}
	}
	if p.runtime {
		fillRuntime(args, t)
	}
	return args, true
}

// fillRuntime adds what the turn knows, under the names that MozaiksAI gave to **runtime or has given
// to parameters since, to arguments that lack it.
func fillRuntime(args map[string]any, t *events.StructuredOutputReady) {
	for name, value := range map[string]string{
		"chat_id": t.Chat, "app_id": t.App, enterpriseID: t.App, "workflow_name": t.Workflow, "workflow": t.Workflow,
		"turn_idempotency_key": t.Turn, "agent_name": t.Agent, "agent": t.Agent, "user_id": t.UserID, "run_id": t.Run,
	} {
		if _, filled := args[name]; !filled && value != "" {
			args[name] = value
		}
	}
}

func has(data map[string]any, name string) bool {
	_, there := data[name]
	return there
}

// fill gives parameters that are still empty the keys that match, exact names before others. With a
// model only exact names do: it may have rules for a name that it does not list. **kwargs gets what
// no parameter could take.
func (p *parameters) fill(args, data map[string]any, exact bool) {
	var loose []string
	for key, v := range data {
		if !slices.Contains(p.names, key) {
			loose = append(loose, key)
		} else if _, taken := args[key]; !taken {
			args[key] = v
		}
	}
	slices.Sort(loose)
	for _, key := range loose {
		name := p.match(key)
		switch {
		case p.keeps(key):
			args[key] = data[key]
		case !exact && name != "" && !has(args, name):
			args[name] = data[key]
		}
	}
}

// Context returns the contents of the tool's context container: vars, and what [Binding.TrustedData] returns,
// which wins over variables of these names. vars is not modified.
func (b *Binding) Context(t *events.StructuredOutputReady, vars map[string]any) map[string]any {
	own := b.TrustedData(t)
	c := make(map[string]any, len(vars)+len(own))
	maps.Copy(c, vars)
	maps.Copy(c, own)
	return c
}

// TrustedData returns what the context container has from the turn itself and no tool can change: its chat_id,
// app_id, workflow_name, turn_idempotency_key, agent_name and, if it is known, user_id. enterprise_id
// equals app_id where the workflow's files or the event use that name, as MozaiksAI had it before 2026.
func (b *Binding) TrustedData(t *events.StructuredOutputReady) map[string]any {
	c := map[string]any{
		"chat_id": t.Chat, "app_id": t.App, "workflow_name": t.Workflow, "turn_idempotency_key": t.Turn, "agent_name": t.Agent,
	}
	if t.UserID != "" {
		c["user_id"] = t.UserID
	}
	if b.Enterprise || t.Enterprise {
		c[enterpriseID] = t.App
	}
	return c
}
