package bindings

import (
	"cmp"
	"strings"
)

// allAgents is the key under which manifests of July 2025 list the tools of every agent.
const allAgents = "ALL_AGENTS"

// toolsByAgent reads the tools of July 2025: a map from agents to their tools, each a map or only the
// dotted path of its function. A plain list of tools that name their agents is read too. Entries have
// no tool_type, usual is the type of all.
func (m *manifest) toolsByAgent(n *node, file, key, usual string) {
	if !n.is(mapNode) {
		m.toolList(n, file, key, usual)
		return
	}
	n = m.bounded(n, file, key)
	for i, agent := range n.keys {
		tools, agents := n.items[i], &node{kind: textNode, text: agent}
		if agent == allAgents && len(m.agents) > 0 {
			agents = m.everyAgent()
		}
		what := key + "." + agent
		if len(agents.items)*len(tools.items) > maxEntries {
			m.errorf(tools.at(file), "too_many_entries", "split the workflow", "%s are more than %d tools of agents; they are ignored", what, maxEntries)
			continue
		}
		m.toolList(tools.eachOf(agents), file, what, usual)
	}
}

func (m *manifest) everyAgent() *node {
	all := &node{kind: listNode}
	for _, a := range m.agents {
		all.items = append(all.items, &node{kind: textNode, text: a.name})
	}
	return all
}

// eachOf returns a list of tools with the agent that each lacks. Anything else stays as it is, to be
// reported.
func (n *node) eachOf(agent *node) *node {
	if !n.is(listNode) {
		return n
	}
	list := &node{kind: listNode, line: n.line}
	for _, tool := range n.items {
		owned := &node{kind: mapNode, line: tool.line}
		switch {
		case tool.is(mapNode):
			for i, key := range tool.keys {
				owned.set(key, tool.items[i])
			}
		case tool.is(textNode):
			owned.set("path", tool)
		default:
			owned = tool
		}
		if owned.is(mapNode) && owned.get("agent").absent() {
			owned.set("agent", agent)
		}
		list.items = append(list.items, owned)
	}
	return list
}

// dottedPath reads file and function from a path as Python names a function, as manifests of July 2025
// have it: workflows.Generator.tools.echo.echo.
func (m *manifest) dottedPath(n *node, t *toolEntry) {
	dotted := n.get("path").str()
	if dotted == "" || t.file != "" || strings.ContainsAny(dotted, "/\\") {
		return
	}
	parts := strings.Split(strings.ReplaceAll(dotted, ":", "."), ".")
	if parts[0] == "workflows" && len(parts) > 1 {
		parts = parts[1:]
	}
	if strings.EqualFold(parts[0], m.workflow) && len(parts) > 1 {
		parts = parts[1:]
	}
	if t.function == "" {
		t.function, parts = parts[len(parts)-1], parts[:len(parts)-1]
	} else if len(parts) > 1 && parts[len(parts)-1] == t.function && parts[len(parts)-2] != "tools" {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return
	}
	t.file, t.name = strings.Join(parts, "/")+".py", cmp.Or(t.name, t.function)
}
