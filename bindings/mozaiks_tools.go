package bindings

import (
	"cmp"
	"slices"
	"strings"
)

// tools of MozaiksAI: a list of entries with agents, file and function, read into toolEntry. The maps by agent of
// July 2025 are in mozaiks_tools_2025.go; effect, timeout, kind and rules are oneturn's additions.

func (m *manifest) readTools(d document) {
	if d.root == nil {
		return
	}
	list := d.root
	if !list.is(listNode) {
		list = d.root.get("tools")
		m.defaults = m.policy(d.root.get("defaults"), d.file)
		m.lifecycle(d.root.get("lifecycle_tools"), d.file)
		m.readServers(d.root.get("servers"), d.file)
		m.misspelt(d.root, d.file, "tools", "backend_tools", "ui_tools", "defaults", "lifecycle_tools", "servers")
	}
	m.toolList(list, d.file, "tools", "")
	if !d.root.is(listNode) {
		m.toolsByAgent(d.root.get("backend_tools"), d.file, "backend_tools", "AGENT_TOOL")
		m.toolsByAgent(d.root.get("ui_tools"), d.file, "ui_tools", "UI_TOOL")
	}
}

// toolList reads a list of tools. Usual is the type of an entry that names none.
func (m *manifest) toolList(list *node, file, key, usual string) {
	if list.absent() {
		return
	}
	if !list.is(listNode) {
		m.errorf(list.at(file), "wrong_shape", "write a list of tools", "%s must be a list", key)
		return
	}
	for _, n := range m.bounded(list, file, key).items {
		if t, ok := m.readTool(n, file, usual); ok {
			m.tools = append(m.tools, t)
		}
	}
}

// readTool reads an entry of MozaiksAI's tools list with our additive keys kind, effect,
// max_attempts and timeout.
func (m *manifest) readTool(n *node, file, usual string) (toolEntry, bool) {
	at := n.at(file)
	if !n.is(mapNode) {
		m.errorf(at, "wrong_shape", "write for example - {agent: A, file: tool.py, function: run}", "a tool must be a map")
		return toolEntry{}, false
	}
	m.misspelt(n, file, append(programKeys(), "agent", "file", "function", "name", "description", "tool_type", "auto_invoke",
		"ui", "kind", "effect", "max_attempts", "timeout", "type", "constraints", "caller", "executor", "trigger", "path", "component", "tool_id", "ui_tool_id", "display",
		"nats", "mcp", "http", "completion", "id",
		"input", "output", "cache", "limits", "guards", "use")...)
	t, ok := m.newTool(n, file)
	if !ok {
		return toolEntry{}, false
	}
	m.dottedPath(n, &t)
	m.readKind(m.withoutCode(n, file, &t), file, KindPython, &t)
	if !m.readToolAgents(n, file, &t) || !m.complete(&t) {
		return toolEntry{}, false
	}
	m.readInvocation(n, file, usual, &t)
	m.carry(&t)
	return t, true
}

// withoutCode returns the entry of a tool that runs programs without file and function, which MozaiksAI needs in every entry.
func (m *manifest) withoutCode(n *node, file string, t *toolEntry) *node {
	kind := Kind(n.get("kind").str())
	if !programKind(kind) {
		return n
	}
	rest := *n
	rest.keys, rest.items, rest.index = nil, nil, map[string]int{}
	for i, key := range n.keys {
		if key != "file" && key != "function" {
			rest.index[key] = len(rest.keys)
			rest.keys, rest.items = append(rest.keys, key), append(rest.items, n.items[i])
		} else if key == "file" || n.get("name").str() != "" { // else it is the tool's name
			m.warnf(n.items[i].at(file), "file_ignored", "remove "+key, "tool %s is of kind %s, so its %s %s is not used", t.name, kind, key, quoted(n.items[i].str()))
		}
	}
	t.file, t.function = "", ""
	return &rest
}

// readKind reads of what kind a tool is, where it is, and the rules around it. A tool of Go or Python
// gets the kind usual if none is set.
func (m *manifest) readKind(n *node, file string, usual Kind, t *toolEntry) {
	if t.kind == "" {
		t.kind = usual
	}
	k := n.get("kind")
	kind := Kind(k.str())
	switch {
	case k.absent():
	case kind == KindGo, kind == KindPython:
		t.kind, t.target, t.shared = kind, nil, ""
	case !slices.Contains(kinds(), string(kind)):
		m.errorf(k.at(file), "bad_kind", cmp.Or(suggestion(k.str(), kinds()), "write kind: python"), "invalid kind %s: must be one of %s", k.shown(), strings.Join(kinds(), ", "))
		t.kind = ""
		return
	}
	o := &entryReader{manifest: m, what: "tool " + t.name, file: file, problem: t.problem}
	if programKind(kind) {
		t.kind = kind
		o.program(n, t)
	} else {
		o.readTarget(n, kind, t)
		o.withoutProgram(n, t)
	}
	o.rules(n, t)
	t.problem = o.problem
}

// readToolAgents reads the agents of a tool: one name or a list.
func (m *manifest) readToolAgents(n *node, file string, t *toolEntry) bool {
	agents := n.get("agent")
	for _, alias := range []string{"caller", "executor"} {
		if a := n.get(alias); agents.absent() && !a.absent() {
			agents = a
			m.infof(a.at(file), "agent_alias", "write agent", "the tool's agent is given as %s", alias)
		}
	}
	t.agents = agents.texts()
	if agents.is(listNode) && len(t.agents) < len(agents.items) {
		m.warnf(agents.at(file), "agent_not_text", "keep names only", "agent lists something that is not a name; it is ignored")
	}
	if len(t.agents) == 0 {
		m.errorf(t.at, "tool_without_agent", "add agent: the name of the agent that calls it", "tool %s has no agent", quoted(t.name))
	}
	return len(t.agents) > 0
}

// complete checks that the tool names what to call.
func (m *manifest) complete(t *toolEntry) bool {
	switch {
	case t.kind == "":
		return false
	case t.name == "":
		fix := t.at.fixFor("add name", "add function", "")
		if t.target != nil {
			fix = "add name"
		}
		m.errorf(t.at, "tool_without_function", fix,
			"a tool of agent %s has neither name nor function", strings.Join(t.agents, ", "))
		return false
	case t.kind == KindPython && t.function == "":
		m.errorf(t.at, "tool_without_function", "add function", "tool %s has no function", t.name)
		return false
	case t.kind == KindPython && t.file == "":
		m.errorf(t.at, "tool_without_file", "add file, or kind: go", "tool %s has no file", t.name)
		return false
	}
	return true
}

// readInvocation reads tool_type, auto_invoke and ui. auto_invoke wins over tool_type in both
// directions.
func (m *manifest) readInvocation(n *node, file, usual string, t *toolEntry) {
	kind := n.first("tool_type", "type")
	shown := t.uiTool // the shared tool that it is
	t.uiTool = false
	switch strings.ToUpper(cmp.Or(kind.str(), usual)) {
	case "UI_TOOL":
		t.uiTool = true
	case "AGENT_TOOL", "":
	default:
		m.warnf(kind.at(file), "unknown_tool_type", "write UI_Tool or Agent_Tool",
			"tool_type %s of tool %s is not known and counts as Agent_Tool", quoted(kind.str()), t.name)
	}
	t.auto = t.uiTool
	t.uiTool = t.uiTool || shown
	if a := n.get("auto_invoke"); !a.absent() {
		v, ok := a.truth()
		if ok {
			t.auto = v
		} else {
			m.warnf(a.at(file), "bad_auto_invoke", "write true or false", "auto_invoke of tool %s is neither true nor false", t.name)
		}
	}
	ui := n.get("ui")
	m.readUI(ui, file, t)
	if ui.absent() && usual != "" {
		t.component, t.mode = n.first("component", "ui_tool_id", "tool_id").str(), n.get("display").str()
	}
	if t.component != "" && kind.absent() && usual == "" && n.get("auto_invoke").absent() {
		m.warnf(ui.at(file), "ui_without_tool_type", "add tool_type: UI_Tool",
			"tool %s has a UI component but no tool_type, so it is not called automatically", t.name)
	}
}

// lifecycle reports lifecycle tools: nothing here calls them. In July 2025 they were a map by name.
func (m *manifest) lifecycle(n *node, file string) {
	switch {
	case n.absent():
	case !n.is(listNode) && !n.is(mapNode):
		m.warnf(n.at(file), "wrong_shape", "write a list", "lifecycle_tools must be a list; it is not interpreted")
	case len(n.items) > 0:
		m.infof(n.at(file), "not_interpreted", "", "%d lifecycle tools are there; they have no part in calling tools and are not interpreted", len(n.items))
		for _, item := range m.bounded(n, file, "lifecycle_tools").items {
			if f := item.get("file"); f.str() != "" {
				m.files = append(m.files, fileRef{f.str(), f.at(file)})
			}
		}
	}
}
