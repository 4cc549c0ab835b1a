package bindings

import (
	"maps"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// A model must not decide whose turn it is. A key that its schema does not declare and that names something the
// turn knows gets the value of the turn, or is dropped; declared fields stay, and `turnctl check` reports those
// with such a name.

// declaration is what a model lists: the only fields of a model's output that count
// unconditionally.
type declaration struct {
	fields       []string // in the order of the manifest
	exact, plain map[string]struct{}
}

// declare lists the fields of the schema that an agent's output has to match: the schema of its model,
// else of the tool's input. The input of a Python function describes parameters, not output.
func declare(bound *Binding) declaration {
	fields := []string{}
	switch {
	case bound.Model != nil:
		fields = append(fields, bound.Model.Fields()...)
	case bound.Input != nil && bound.Kind != KindPython:
		fields = append(fields, bound.Input.Fields()...)
	}
	d := declaration{fields: fields, exact: make(map[string]struct{}, len(fields)), plain: make(map[string]struct{}, len(fields))}
	for _, f := range fields {
		d.exact[f] = struct{}{}
		if plain := model.Plain(f); plain != "" {
			d.plain[plain] = struct{}{}
		}
	}
	return d
}

// Fields lists what the model declares, in the order of the manifest; nil without a model.
func (b *Binding) Fields() []string {
	if b.Model == nil {
		return nil
	}
	return b.declared.fields
}

// trusted returns data without what an undeclared key must not decide. A key that names something the
// turn knows gets the value of the turn, or is dropped if the turn has none: what a model writes never
// decides whose turn it is. Another spelling of a declared field is dropped: no rule
// has checked it. changed reports whether the result is another map.
func (d *declaration) trusted(data map[string]any, turn func(plain string) (fact, bool)) (_ map[string]any, changed bool) {
	for key := range data {
		if _, declared := d.exact[key]; declared {
			continue
		}
		plain := model.Plain(key)
		_, respelt := d.plain[plain]
		own, known := turn(plain)
		if !respelt && !known {
			continue
		}
		if !changed {
			data, changed = maps.Clone(data), true
		}
		if respelt || own.value == "" {
			delete(data, key)
		} else {
			data[key] = own.value
		}
	}
	return data, changed
}

// claims lists the declared fields that the tool gets in place of something the turn knows.
func (b *Binding) claims() []string {
	var names []string
	for _, f := range b.declared.fields {
		_, known := b.parameters.fact(&events.StructuredOutputReady{}, model.Plain(f))
		if known && (b.Kind != KindPython || b.SignatureUnknown || b.parameters.match(f) != "") {
			names = append(names, f)
		}
	}
	return names
}

// fact is something that a turn knows; "" if this one does not.
type fact struct {
	value  string
	always bool // every turn has it
}

// fromTurn gives what the turn itself knows under a name of this plain form.
func fromTurn(t *events.StructuredOutputReady, plain string) (_ fact, known bool) {
	switch plain {
	case "CHATID":
		return fact{t.Chat, true}, true
	case "APPID", "ENTERPRISEID":
		return fact{t.App, true}, true
	case "USERID":
		return fact{t.UserID, false}, true
	case "RUNID":
		return fact{t.Run, false}, true
	case "WORKFLOWNAME":
		return fact{t.Workflow, true}, true
	case "TURNIDEMPOTENCYKEY":
		return fact{t.Turn, true}, true
	case "AGENTNAME", "AGENT":
		return fact{t.Agent, true}, true
	}
	return fact{}, false
}
