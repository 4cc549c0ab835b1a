package bindings

import (
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
)

// structured_outputs of MozaiksAI: the registry (agent to model) and the models, wrapped or not, with fields as a
// map or a list.

func (m *manifest) readStructuredOutputs(d document) {
	if d.root == nil {
		return
	}
	n := unwrap(d.root, "structured_outputs")
	if n != d.root {
		m.registry(d.root.get("registry"), d.file, true)
	}
	m.registry(n.get("registry"), d.file, false)
	for _, e := range m.entries(n.get("models"), d.file, "models", "model_name", "name") {
		m.readModel(e, d.file)
	}
}

// registry reads agent → model, or the older list of {agent, agent_definition}. The one inside
// the wrapper is read last, so that it counts where both name an agent.
func (m *manifest) registry(n *node, file string, outside bool) {
	if n.absent() {
		return
	}
	if outside {
		m.infof(n.at(file), "registry_beside_models", "move it under structured_outputs",
			"registry is next to structured_outputs, where MozaiksAI ignores it and oneturn reads it")
	}
	for _, e := range m.entries(n, file, "registry", "agent", "agent_name", "name") {
		target := e.node
		if target.is(mapNode) {
			target = target.first("agent_definition", "model", "model_name")
		}
		switch {
		case target.absent(): // an agent without model
		case target.str() == "":
			m.warnf(e.node.at(file), "bad_registration", "write the model's name", "registry entry of agent %s has no model", e.name)
		default:
			m.register(e.name, target.str(), e.node.at(file))
		}
	}
}

// readModel reads one model of MozaiksAI's language. What its fields mean is for package model.
func (m *manifest) readModel(e named, file string) {
	at := e.node.at(file)
	switch kind := e.node.get("type"); {
	case !e.node.is(mapNode):
		m.errorf(at, "wrong_shape", "write {type: model, fields: …}", "model %s must be a map", e.name)
		return
	case kind.absent():
		m.warnf(at, "model_without_type", "add type: model", "model %s has no type; MozaiksAI skips it, here it is read", e.name)
	case aliases(e.node):
		m.addModel(modelEntry{name: e.name, alias: spec(e.node), lines: make(map[string]int), at: at})
		return
	case kind.str() != "model":
		m.warnf(kind.at(file), "not_a_model", "write type: model", "model %s has another type than model and is skipped", e.name)
		return
	}
	entry := modelEntry{name: e.name, lines: make(map[string]int), at: at}
	for _, f := range m.entries(e.node.get("fields"), file, "fields of model "+e.name, "name") {
		spec := spec(f.node)
		switch {
		case f.node.is(mapNode):
		case f.node.is(textNode):
			m.warnf(f.node.at(file), "short_field", "write {type: …}", "field %s of model %s is a bare type name", f.name, e.name)
			spec["type"] = f.node.str()
		default:
			m.errorf(f.node.at(file), "bad_field", "write {type: …}", "field %s of model %s must be a map", f.name, e.name)
		}
		entry.fields = append(entry.fields, model.Field{Name: f.name, Spec: spec})
		entry.lines[f.name] = f.node.line
	}
	m.addModel(entry)
}

// aliases reports whether a definition is a name for a type, as workflows have had since
// August 2026, and not a model.
func aliases(n *node) bool {
	switch strings.ToLower(n.get("type").str()) {
	case "literal", "enum":
		return !n.first("values", "enum", "allowed_values").absent()
	case "union":
		return !n.get("variants").absent()
	}
	return false
}

// spec returns the mapping of a field or of a named type.
func spec(n *node) map[string]any {
	spec := map[string]any{}
	if n.is(mapNode) {
		for i, k := range n.keys {
			spec[k] = n.items[i].value()
		}
	}
	return spec
}
