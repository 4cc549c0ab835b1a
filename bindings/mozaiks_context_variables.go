package bindings

import (
	"strings"
)

// The generations of MozaiksAI that kept a list for each kind of variable, and triggers that were written into the
// variable itself.

// legacyLists reads the generations that kept a list for each kind of variable. It reports
// whether there was one.
func (m *manifest) legacyLists(n *node, file string) bool {
	found := false
	lists := []struct {
		key    string
		source SourceType
	}{
		{"variables", SourceState},
		{"database_variables", SourceDataReference},
		{"environment_variables", SourceConfig},
		{"static_variables", SourceStatic},
		{"declarative_variables", SourceState},
		{"derived_variables", SourceDerived},
		{"runtime_variables", SourceRuntime},
	}
	for _, l := range lists {
		list := n.get(l.key)
		// A variable of a flat map may be called like one of the lists.
		if list == nil || list.get("type").is(textNode) {
			continue
		}
		found = true
		m.infof(list.at(file), "older_context", "move the variables to definitions",
			"%s is of an older generation that MozaiksAI's current loader ignores; here it is read", l.key)
		for _, e := range m.entries(list, file, l.key, "name", "key", "variable") {
			m.legacyVariable(e, l.source, file)
		}
	}
	return found
}

// legacyVariable reads an entry of such a list: the list is the source, and the keys of the entry are
// the keys of the source.
func (m *manifest) legacyVariable(e named, source SourceType, file string) {
	if e.node.get("source").is(mapNode) || inlineSource(e.node) != nil {
		m.readVariable(e.name, e.node, file)
		return
	}
	if !e.node.is(mapNode) {
		m.warnf(e.node.at(file), "bad_variable", "write {name, …}", "context variable %s must be a map; it is ignored", quoted(e.name))
		return
	}
	v := Variable{
		Name: e.name, Type: e.node.get("type").str(), Description: e.node.get("description").str(),
		Source: Source{Type: source}, at: e.node.at(file),
	}
	for i, k := range e.node.keys {
		item := e.node.items[i]
		switch k {
		case "name", "key", "variable", "type", "description", "triggers", "transitions":
		case "default", "value":
			v.setDefault(item)
		case "trigger_type", "source_agent", "trigger_value", "trigger", "from", "match", "ui_hidden":
		default:
			if v.Source.Params == nil {
				v.Source.Params = make(map[string]any)
			}
			v.Source.Params[k] = item.value()
		}
	}
	m.readTriggers(e.node, file, &v)
	m.flatTrigger(e.node, file, &v)
	m.addVariable(v)
}

// flatTrigger reads a trigger that is written into the variable itself:
// {trigger_type: agent_text_equals, source_agent, trigger_value, ui_hidden} and
// {from: trigger.<Agent>.text, match, ui_hidden}.
func (m *manifest) flatTrigger(n *node, file string, v *Variable) {
	hidden, _ := n.get("ui_hidden").truth()
	t := Trigger{Type: TriggerAgentText, UIHidden: hidden, Value: true}
	if from := n.get("from").str(); from != "" {
		agent, isTrigger := strings.CutPrefix(from, "trigger.")
		agent, isText := strings.CutSuffix(agent, ".text")
		if !isTrigger || !isText {
			m.warnf(n.get("from").at(file), "bad_trigger", "write trigger.<Agent>.text", "context variable %s has an unknown trigger %s", v.Name, quoted(from))
			return
		}
		v.Source.Type = SourceDerived
		t.Agent, t.Match, t.Patterns = agent, MatchEquals, n.get("match").patterns()
		m.addTrigger(t, n.at(file), v)
		return
	}
	value := n.get("trigger_value")
	if value.absent() {
		return
	}
	t.Agent, t.Match, t.Patterns = n.get("source_agent").str(), MatchEquals, value.patterns()
	switch kind := n.get("trigger_type").str(); kind {
	case "agent_text_equals", "agent_text", "":
	case "agent_text_contains":
		t.Match = MatchContains
	case "agent_text_regex":
		t.Match = MatchRegex
	default:
		m.warnf(n.at(file), "bad_trigger", "write agent_text_equals", "context variable %s has the unknown trigger_type %s", v.Name, quoted(kind))
		return
	}
	m.addTrigger(t, n.at(file), v)
}
