package bindings

import (
	"slices"
)

// readMozaiks reads the manifests of MozaiksAI. Every section of them may be missing, wrapped
// in a key of the same name or not, and written as a map or as a list.
func (m *manifest) readMozaiks(docs map[string]document) {
	m.readOrchestrator(docs["orchestrator"])
	m.readAgents(docs["agents"])
	m.readStructuredOutputs(docs["structured_outputs"])
	m.readTools(docs["tools"])
	m.readContext(docs["context_variables"])
	m.readHandoffs(docs["handoffs"])
	m.readVisual(docs["ui_config"])
	for _, section := range []string{"hooks", "ui_config"} {
		if d := docs[section]; d.root != nil {
			m.infof(place{file: d.file}, "not_interpreted", "", "%s is there; it has no part in calling tools and is not interpreted", section)
		}
	}
}

// unwrap returns the value under key, or n itself if the key is not there.
func unwrap(n *node, key string) *node {
	if inner := n.get(key); inner != nil {
		return inner
	}
	return n
}

// patterns are the orchestration patterns that MozaiksAI knows.
func patterns() []string {
	return []string{"AutoPattern", "DefaultPattern", "RoundRobinPattern", "RandomPattern"}
}

func (m *manifest) readOrchestrator(d document) {
	if d.root == nil {
		return
	}
	n := unwrap(d.root, "orchestrator")
	m.settings(n, d.file)
	m.misspelt(n, d.file, "on_key_reuse", "compat")
	if w := n.get("workflow_name"); w.str() != "" && w.str() != m.workflow {
		m.infof(w.at(d.file), "workflow_name_differs", "rename the folder or the key",
			"workflow_name is %s; the folder's name %s counts", quoted(w.str()), quoted(m.workflow))
	}
	m.pattern = n.get("orchestration_pattern").str()
	if p := n.get("orchestration_pattern"); p.str() != "" && !slices.Contains(patterns(), p.str()) {
		m.warnf(p.at(d.file), "unknown_pattern", didYouMean(p.str(), patterns()),
			"orchestration_pattern %s is not known to MozaiksAI", quoted(p.str()))
	}
}

func (m *manifest) readAgents(d document) {
	if d.root == nil {
		return
	}
	for _, e := range m.entries(unwrap(d.root, "agents"), d.file, "agents", "name") {
		auto := e.node.get("auto_tool_mode")
		on, ok := auto.truth()
		switch {
		case !auto.absent() && !ok:
			m.warnf(auto.at(d.file), "bad_auto_tool_mode", "write true or false", "auto_tool_mode of agent %s is neither true nor false", e.name)
		case auto.is(textNode) && !auto.plain:
			m.warnf(auto.at(d.file), "auto_tool_mode_text", "remove the quotes",
				"auto_tool_mode of agent %s is a text; MozaiksAI then shows the agent's raw output", e.name)
		}
		if _, again := m.agent(e.name); again {
			m.warnf(e.node.at(d.file), "agent_defined_twice", "keep one of them", "agent %s is defined more than once", e.name)
			continue
		}
		m.agents = append(m.agents, agentEntry{name: e.name, auto: on, mozaiks: true, at: e.node.at(d.file)})
	}
}

// readVisual reads which agents frontends display, and warns of those that do not exist.
func (m *manifest) readVisual(d document) {
	if d.root == nil {
		return
	}
	visual := unwrap(d.root, "ui_config").get("visual_agents")
	for _, name := range visual.texts() {
		m.visual = append(m.visual, foldAgent(name))
		known := slices.ContainsFunc(m.agents, func(a agentEntry) bool { return foldAgent(a.name) == foldAgent(name) })
		if len(m.agents) > 0 && !known && foldAgent(name) != "user" {
			m.warnf(visual.at(d.file), "unknown_agent", didYouMean(name, m.agentNames()), "visual_agents names the unknown agent %s", quoted(name))
		}
	}
}
