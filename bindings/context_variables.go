package bindings

import (
	"slices"
)

// Context variables of every generation of manifests are read into one [Variable]: where its value comes from,
// what sets it and which agents see it. The lists of older generations are in mozaiks_context_variables.go,
// triggers in trigger_reader.go, the values that variables start with in start_values.go.

// Variable is a context variable of a workflow. Every generation of the manifests is read into
// this one form.
type Variable struct {
	Name        string
	Type        string // as written: string, boolean, …; "" if not set
	Description string
	Source      Source
	Triggers    []Trigger // in the order of the manifest: the first that holds counts
	Default     any       // value tree, nil if there is none
	Agents      []string  // agents that the manifests show the variable to

	// Start is the value that the variable has in a new chat, nil for null. [Set.StartValues] knows the values of
	// runtime variables, which differ between chats.
	Start any
	// Tool is the tool that reads the value of a data_reference or data_entity variable, "" if the manifest names none.
	Tool string

	hasDefault bool // also a default of null
	at         place
}

// Private reports whether the start value is from outside the manifests, the environment or a file, and not null: it may be private.
func (v *Variable) Private() bool {
	return (v.Source.Type == SourceConfig || v.Source.Type == SourceFile) && v.Start != nil
}

// SourceType is where a variable gets its value.
type SourceType string

// Types of sources.
const (
	SourceConfig        SourceType = "config"         // environment or default
	SourceDataReference SourceType = "data_reference" // read from a database
	SourceDataEntity    SourceType = "data_entity"    // written to a database
	SourceComputed      SourceType = "computed"       // null until a tool sets it
	SourceState         SourceType = "state"          // default, then triggers and tools
	SourceDerived       SourceType = "derived"        // as state, but starts as false without default
	SourceStatic        SourceType = "static"         // the value in the manifest
	SourceRuntime       SourceType = "runtime"        // given by the chat: its ids, or the producer's snapshot
	SourceExternal      SourceType = "external"       // null until a tool sets it
	SourceFile          SourceType = "file"           // read from a file
)

// Source is where a variable gets its value: the type and its other keys as written.
type Source struct {
	Type   SourceType
	Params map[string]any
}

// sourceType maps the names of all generations to today's.
func sourceType(word string) (SourceType, bool) {
	if slices.Contains(sourceTypes(), word) {
		return SourceType(word), true
	}
	switch word {
	case "environment":
		return SourceConfig, true
	case "database":
		return SourceDataReference, true
	case "declarative":
		return SourceState, true
	}
	return "", false
}

func sourceTypes() []string {
	return []string{
		"state", "derived", "static", "config", "file", "runtime", "computed", "external", "data_reference", "data_entity",
	}
}

// readContext reads context_variables.* of any generation.
func (m *manifest) readContext(d document) {
	if d.root == nil {
		return
	}
	n := unwrap(d.root, "context_variables")
	switch {
	case n.is(listNode):
		m.variableList(n, d.file)
	case n.get("definitions") != nil || n.get("agents") != nil:
		for _, e := range m.entries(n.get("definitions"), d.file, "context definitions", "name", "key") {
			m.readVariable(e.name, e.node, d.file)
		}
		m.exposures(n.get("agents"), d.file)
		m.legacyLists(n, d.file)
	case !n.is(mapNode):
		m.errorf(n.at(d.file), "wrong_shape", "write definitions: name → variable", "context_variables must be a map or a list")
	case !m.legacyLists(n, d.file):
		// A flat map name → {type, default}.
		for _, e := range m.entries(n, d.file, "context_variables") {
			m.readVariable(e.name, e.node, d.file)
		}
	}
	if n != d.root {
		m.legacyLists(d.root, d.file) // next to context_variables
	}
}

func (m *manifest) variableList(n *node, file string) {
	for _, e := range m.entries(n, file, "context_variables", "name", "key") {
		m.readVariable(e.name, e.node, file)
	}
}

// readVariable reads one variable; an error leaves out this variable only.
func (m *manifest) readVariable(name string, n *node, file string) {
	at := n.at(file)
	if name == "" || !n.is(mapNode) {
		m.warnf(at, "bad_variable", "write {type, description, source}", "context variable %s must be a map; it is ignored", quoted(name))
		return
	}
	v := Variable{
		Name: name, Type: n.get("type").str(), Description: n.get("description").str(),
		Source: Source{Type: SourceState}, at: at,
	}
	v.setDefault(n.get("default"))
	source := n.get("source")
	if source.str() != "" { // a bare type name
		source = &node{kind: mapNode, line: source.line, keys: []string{"type"}, items: []*node{source}}
	}
	if source == nil {
		source = inlineSource(n)
	}
	if !m.readSource(source, file, &v) {
		return
	}
	for _, holder := range []*node{n, source} {
		m.readTriggers(holder, file, &v)
	}
	m.addVariable(v)
}

// setDefault takes a default if there is one.
func (v *Variable) setDefault(n *node) {
	if n != nil {
		v.Default, v.hasDefault = n.value(), true
	}
}

// inlineSource finds the source of the oldest generation, whose key was the name of the source.
func inlineSource(n *node) *node {
	for _, word := range []string{"database", "environment", "derived"} {
		inner := n.get(word)
		if !inner.is(mapNode) {
			continue
		}
		source := &node{kind: mapNode, line: inner.line}
		source.set("type", &node{kind: textNode, line: inner.line, text: word})
		for i, k := range inner.keys {
			if k != "type" {
				source.set(k, inner.items[i])
			}
		}
		return source
	}
	return nil
}

func (m *manifest) readSource(n *node, file string, v *Variable) bool {
	if n.absent() {
		return true
	}
	word := n.get("type").str()
	kind, ok := sourceType(word)
	if !n.is(mapNode) || !ok {
		m.warnf(n.at(file), "unknown_source", didYouMean(word, sourceTypes()),
			"context variable %s has the unknown source type %s; it is ignored", v.Name, quoted(word))
		return false
	}
	v.Source.Type = kind
	for i, k := range n.keys {
		switch k {
		case "type", "triggers", "transitions":
		case "default":
			v.setDefault(n.items[i])
		case "value":
			if kind == SourceStatic {
				v.setDefault(n.items[i])
				continue
			}
			fallthrough
		default:
			if v.Source.Params == nil {
				v.Source.Params = make(map[string]any)
			}
			v.Source.Params[k] = n.items[i].value()
		}
	}
	return true
}

func (m *manifest) addVariable(v Variable) {
	i := slices.IndexFunc(m.variables, func(o Variable) bool { return o.Name == v.Name })
	switch {
	case i >= 0:
		m.warnf(v.at, "variable_defined_twice", "keep one of them",
			"context variable %s is defined here and at %s; this one counts", v.Name, m.variables[i].at)
		m.variables[i] = v
	case len(m.variables) >= maxEntries:
		m.errorf(v.at, "too_many_entries", "split the workflow", "more than %d context variables; %s is ignored", maxEntries, v.Name)
	default:
		m.variables = append(m.variables, v)
	}
}

// exposures reads which agents see which variables.
func (m *manifest) exposures(n *node, file string) {
	known := make([]string, len(m.variables))
	for i := range m.variables {
		known[i] = m.variables[i].Name
	}
	for _, e := range m.entries(n, file, "agents of context_variables", "agent", "agent_name", "name") {
		names := e.node
		if names.is(mapNode) {
			names = names.get("variables")
		}
		var unknown []string
		for _, name := range names.texts() {
			if !m.expose(e.name, name) {
				unknown = append(unknown, name)
			}
		}
		m.unknownVariables(e.node.at(file), e.name, unknown, known)
	}
}

// unknownVariables reports what an agent lists and nothing defines, in one finding.
func (m *manifest) unknownVariables(at place, agent string, unknown, known []string) {
	const define = "define it under variables"
	switch len(unknown) {
	case 0:
	case 1:
		m.warnf(at, "unknown_variable", thereOr(unknown[0], known, define), "agent %s lists the unknown context variable %s", agent, quoted(unknown[0]))
	default:
		for i := range unknown {
			unknown[i] = quoted(unknown[i])
		}
		m.warnf(at, "unknown_variable", thereOr("", known, define), "agent %s lists the unknown context variables %s", agent, listed(unknown))
	}
}

func (m *manifest) expose(agent, variable string) bool {
	i := slices.IndexFunc(m.variables, func(v Variable) bool { return v.Name == variable })
	if i < 0 {
		return false
	}
	if v := &m.variables[i]; !slices.Contains(v.Agents, agent) {
		v.Agents = append(v.Agents, agent)
	}
	return true
}
