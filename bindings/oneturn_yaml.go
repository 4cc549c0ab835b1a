package bindings

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// oneturn.yaml is read strictly: a key that its JSON Schema does not have is an error. It fills the same manifest
// as the files of MozaiksAI, after them.

//go:embed schema/oneturn.schema.json
var manifestSchema []byte

//go:embed schema/shared.schema.json
var sharedSchema []byte

// SharedSchema returns the JSON Schema (draft 2020-12) of tools.oneturn.yaml, for editors.
func SharedSchema() ([]byte, error) {
	var manifest struct {
		Defs json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(manifestSchema, &manifest); err != nil {
		return nil, fmt.Errorf("read the schema of oneturn.yaml: %w", err)
	}
	return bytes.Replace(sharedSchema, []byte(`"$defs": {}`), slices.Concat([]byte(`"$defs": `), manifest.Defs), 1), nil
}

// ManifestSchema returns the JSON Schema (draft 2020-12) of oneturn.yaml, for editors.
func ManifestSchema() []byte { return slices.Clone(manifestSchema) }

// ownKeys lists the keys of each object of oneturn.yaml. The schema for editors has the same.
func ownKeys(object string) []string {
	switch object {
	case "manifest":
		return []string{"workflow", "description", "agents", "models", "tools", "defaults", "context", "handoffs", "on_key_reuse", "compat", "servers"}
	case "handoffs":
		return []string{"decider", "rules"}
	case "agent":
		return []string{"model", "description", "tools", "completion", "corrections"}
	case "tool":
		return []string{
			"name", "kind", "agent", "agents", "model", "schema", "file", "function", "auto",
			"effect", "timeout", "max_attempts", "ui", "description",
			"nats", "mcp", "http", "completion", "id", "input", "output", "cache", "limits", "guards", "use",
			"uses", "planner", "respond", "approve", "enabled", "program",
		}
	case "shared tool":
		return []string{
			"name", "kind", "schema", "effect", "timeout", "max_attempts", "ui", "description",
			"nats", "mcp", "http", "completion", "id", "input", "output", "cache", "limits", "guards",
		}
	case "shared manifest":
		return []string{"servers", "tools"}
	case "program":
		return []string{"calls", "steps", "parallel", "depth", "step_timeout", "timeout"}
	case "cache":
		return []string{"ttl", "scope"}
	case "limits":
		return []string{"concurrency", "rate", "burst", "output", "tenant"}
	case "tenant":
		return []string{"concurrency", "rate", "burst"}
	case "guard":
		return []string{"on", "schema", "when", "secrets", "max_bytes", "message"}
	case "nats":
		return []string{"subject", "service", "endpoint", "subjects", "trust_metadata"}
	case "mcp":
		return []string{"server", "tool", "digest"}
	case "http":
		return []string{"url", "method", "headers", "allow_http", "allow_private"}
	case "completion":
		return []string{"url", "model", "system", "temperature", "max_tokens", "headers", "allow_http", "allow_private"}
	case "server":
		return []string{"command", "env", "url", "headers", "allow_http", "allow_private", "trust_annotations", "sessions"}
	case "value":
		return []string{"file", "prefix"}
	case "ui":
		return []string{"component", "mode", "secret"}
	case "defaults":
		return []string{"effect", "timeout", "max_attempts"}
	case "variable":
		return []string{"type", "description", "default", "source", "triggers", "transitions", "agents"}
	case "compat":
		return []string{"silent", "events", "allowed_values", "split_hiding"}
	default:
		return nil
	}
}

// strict reports every key of n that the object does not have. It returns the first as a reason not to use a tool: a
// misspelt guard, limit or approval must not leave the tool without one.
func (m *manifest) strict(n *node, file, object string) *bindProblem {
	if !n.is(mapNode) {
		return nil
	}
	var first *bindProblem
	known := ownKeys(object)
	const most = 50
	for i, k := range n.keys[:min(len(n.keys), most)] {
		if !slices.Contains(known, k) {
			at, fix, text := n.items[i].at(file), didYouMean(k, known), object+" has no key "+quoted(k)
			m.errorf(at, "unknown_key", fix, "%s", text)
			if first == nil {
				first = &bindProblem{at: at, text: text, fix: fix, reported: true}
			}
		}
	}
	return first
}

// table returns n if it is a map or absent, else reports and returns nil.
func (m *manifest) table(n *node, file, what, example string) *node {
	if n.absent() || n.is(mapNode) {
		return n
	}
	m.errorf(n.at(file), "wrong_shape", "write for example "+example, "%s must be a map", what)
	return nil
}

// readOneturn reads our own manifest. It comes after MozaiksAI's manifests and adds to them.
func (m *manifest) readOneturn(d document) {
	n := m.table(d.root, d.file, "oneturn.yaml", "agents: {TicketAgent: {model: Ticket}}")
	if n == nil {
		return
	}
	m.strict(n, d.file, "manifest")
	if w := n.get("workflow"); !w.absent() && w.str() != m.workflow {
		m.errorf(w.at(d.file), "workflow_name_differs", "rename the folder, or remove the key",
			"workflow is %s but the folder is called %s; the folder counts", quoted(w.text), quoted(m.workflow))
	}
	m.description = n.get("description").str()
	m.strict(m.table(n.get("compat"), d.file, "compat", "compat: {silent: false}"), d.file, "compat")
	m.settings(n, d.file)
	if defaults := m.table(n.get("defaults"), d.file, "defaults", "defaults: {effect: unsafe, timeout: 60s}"); defaults != nil {
		m.strict(defaults, d.file, "defaults")
		m.defaults = m.policy(defaults, d.file)
	}
	m.ownAgents(n.get("agents"), d.file)
	const model = "models: {Ticket: {type: object, properties: {title: {type: string}}}}"
	for _, e := range m.entries(m.table(n.get("models"), d.file, "models", model), d.file, "models") {
		m.addModel(modelEntry{name: e.name, schema: e.node.appendJSON(nil), source: e.node, at: e.node.at(d.file)})
	}
	m.readServers(n.get("servers"), d.file)
	m.listedTools(n.get("tools"), d.file, exampleTool, m.ownTool)
	m.ownContext(n.get("context"), d.file)
	m.ownHandoffs(n.get("handoffs"), d.file)
}

func (m *manifest) ownAgents(n *node, file string) {
	for _, e := range m.entries(m.table(n, file, "agents", "agents: {TicketAgent: {model: Ticket}}"), file, "agents") {
		at := e.node.at(file)
		example := fmt.Sprintf("%s: {model: %s}", e.name, cmp.Or(e.node.str(), "Ticket"))
		m.strict(m.table(e.node, file, "agent "+e.name, example), file, "agent")
		entry := agentEntry{name: e.name, auto: true, at: at}
		m.ownAllowed(e.node.get("tools"), file, &entry)
		m.ownCorrections(e.name, e.node, file)
		switch i := slices.IndexFunc(m.agents, func(a agentEntry) bool { return a.name == e.name }); {
		case i < 0:
			m.agents = append(m.agents, entry)
		case !onlyCorrects(e.node):
			m.agents[i] = entry
		}
		mdl := e.node.get("model")
		switch {
		case mdl.absent():
		case mdl.str() == "":
			m.errorf(mdl.at(file), "wrong_shape", "write for example model: Ticket", "model of agent %s must be a name", e.name)
		default:
			m.register(e.name, mdl.str(), mdl.at(file))
		}
	}
}

const exampleTool = "{name: open_ticket, agent: TicketAgent, file: tickets.py}"

// listedTools reads a list of tools, each by read.
func (m *manifest) listedTools(n *node, file, example string, read func(n *node, file string) (toolEntry, bool)) {
	switch {
	case n.absent():
		return
	case !n.is(listNode):
		m.errorf(n.at(file), "wrong_shape", "write for example tools: ["+example+"]", "tools must be a list")
		return
	}
	for _, item := range m.bounded(n, file, "tools").items {
		if !item.is(mapNode) {
			m.errorf(item.at(file), "wrong_shape", "write for example - "+example, "a tool must be a map")
			continue
		}
		t, ok := read(item, file)
		if !ok {
			m.dropped = append(m.dropped, t.name, item.get("id").str())
			continue
		}
		m.tools = append(m.tools, t)
	}
}

func (m *manifest) ownTool(n *node, file string) (toolEntry, bool) {
	unknown := m.strict(n, file, "tool")
	t, ok := m.newTool(n, file)
	if !ok {
		return t, false
	}
	t.problem = cmp.Or(t.problem, unknown)
	t.auto, t.model = true, n.get("model").str()
	usual := KindGo
	if t.file != "" {
		usual = KindPython
	}
	m.readKind(n, file, usual, &t)
	switch {
	case t.kind == KindPython && t.function == "":
		t.function = t.name
	case t.kind == KindGo && t.file != "":
		m.warnf(n.get("file").at(file), "file_ignored", "remove file, or kind: go", "tool %s is of kind go, so its file %s is not used", t.name, quoted(t.file))
	}
	if a := n.get("auto"); !a.absent() {
		v, ok := a.truth()
		if !ok {
			m.errorf(a.at(file), "bad_auto", "write true or false", "auto of tool %s is neither true nor false", t.name)
		}
		t.auto = v
	}
	if ui := m.table(n.get("ui"), file, "ui", "ui: {component: TicketCard, mode: inline}"); ui != nil {
		t.problem = cmp.Or(t.problem, m.strict(ui, file, "ui"))
		m.readUI(ui, file, &t)
		t.uiTool = t.component != ""
	}
	t.agents = append(n.get("agent").texts(), n.get("agents").texts()...)
	if len(t.agents) == 0 && t.auto {
		m.errorf(t.at, "tool_without_agent", "add agent: the name of the agent that calls it, or auto: false if only programs call it", "tool %s has no agent", quoted(t.name))
		return t, false
	}
	if !m.complete(&t) {
		return t, false
	}
	if s := n.get("schema"); !s.absent() {
		if t.model != "" {
			m.errorf(s.at(file), "model_and_schema", "keep one of them", "tool %s has both model and schema", t.name)
			return t, false
		}
		t.schema, t.schemaAt = s, s.at(file)
	}
	m.carry(&t)
	return t, true
}

// newTool begins an entry with what all formats share: nothing, or the shared tool that it uses.
func (m *manifest) newTool(n *node, file string) (toolEntry, bool) {
	t := toolEntry{}
	if u := n.get("use"); !u.absent() {
		var ok bool
		if t, ok = m.use(u, file); !ok {
			return t, false
		}
	}
	t.at, t.policy = n.at(file), m.policy(n, file).over(t.policy)
	t.file, t.function = n.get("file").str(), n.get("function").str()
	t.description = cmp.Or(n.get("description").str(), t.description)
	name := cmp.Or(n.get("name").str(), t.name, t.function, agentName(n))
	if t.kind == KindGo && name != t.name {
		m.errorf(n.get("name").at(file), "go_tool_renamed", "remove name", "tool %s is a Go function, which is found by its name; it cannot be called %s here", t.name, quoted(name))
		return t, false
	}
	t.name = name
	return t, true
}

// carry makes the model of a schema that a tool carries itself, named after the tool.
func (m *manifest) carry(t *toolEntry) {
	if t.schema != nil && t.model == "" {
		t.model = t.name
		m.addModel(modelEntry{name: t.name, schema: t.schema.appendJSON(nil), source: t.schema, at: t.schemaAt})
	}
}

// ownContext reads the context variables of oneturn.yaml.
func (m *manifest) ownContext(n *node, file string) {
	for _, e := range m.entries(m.table(n, file, "context", "context: {topic: {type: string}}"), file, "context") {
		m.strict(m.table(e.node, file, "variable "+e.name, e.name+": {type: string}"), file, "variable")
		m.readVariable(e.name, e.node, file)
		for _, agent := range e.node.get("agents").texts() {
			m.expose(agent, strings.TrimSpace(e.name))
		}
	}
}
