package bindings

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The file tools.oneturn.yaml at the root declares tools and servers for all workflows. It is bound like a
// workflow without a name; a tool of a workflow takes one over with `use`, and its digest is then part of the
// workflow's digest.

// sharedSection is the file at the root with what all workflows share, without extension.
const sharedSection = "tools.oneturn"

// shared is the content of the file at the root: tools and servers for all workflows. A nil one is
// empty.
type shared struct {
	*workflow // without a name: its tools and findings

	entries map[string]*toolEntry
	servers map[string]serverEntry
}

// readShared reads the file at the root, or keeps the previous version of it when the new one has
// new errors.
func readShared(root *os.Root, opts *Options, previous *Set) *shared {
	if root == nil {
		return nil
	}
	m := &manifest{report: &report{}, registered: map[string]registration{}}
	f := &folder{dir: ".", root: root}
	c := &contents{manifests: map[string][]byte{}, failures: map[string]error{}}
	sum := sha256.New()
	f.scanSection(sharedSection, c, sum)
	if len(c.manifests) == 0 {
		return nil
	}
	digest := shortHash(sum)
	if previous != nil && previous.shared != nil && previous.shared.digest == digest {
		kept := *previous.shared.workflow
		kept.shown = kept.own
		return &shared{&kept, previous.shared.entries, previous.shared.servers}
	}
	var err error
	if m.root, err = filepath.Abs(root.Name()); err != nil {
		m.errorf(place{}, "unreadable", "name the workflows folder by an absolute path", "the workflows folder cannot be found: %v", err)
	}
	m.readShared(m.choose(f, c, sharedSection))
	m.connect()
	w := bind(&parsedWorkflow{dir: ".", digest: digest, manifest: m}, nil, opts, true)
	next := &shared{workflow: w, entries: make(map[string]*toolEntry, len(m.tools)), servers: m.servers}
	for i := range m.tools {
		next.entries[m.tools[i].name] = &m.tools[i]
	}
	if previous == nil || previous.shared == nil {
		return next
	}
	old := previous.shared
	if over := w.over(old.workflow); over.digest != digest {
		return &shared{over, old.entries, old.servers}
	}
	return next
}

// readShared reads servers and tools.
func (m *manifest) readShared(d document) {
	n := m.table(d.root, d.file, "the file", "tools: [{name: place_order, nats: {subject: orders.place}}]")
	if n == nil {
		return
	}
	m.strict(n, d.file, "shared manifest")
	m.readServers(n.get("servers"), d.file)
	m.listedTools(n.get("tools"), d.file, exampleShared, m.sharedTool)
}

const exampleShared = "{name: place_order, nats: {subject: orders.place}}"

func (m *manifest) sharedTool(n *node, file string) (toolEntry, bool) {
	t := toolEntry{
		problem: m.strict(n, file, "shared tool"),
		at:      n.at(file), name: n.get("name").str(), description: n.get("description").str(), auto: true, policy: m.policy(n, file),
	}
	if t.name = cmp.Or(t.name, agentName(n)); t.name == "" {
		m.errorf(t.at, "tool_without_name", "add name", "a shared tool has no name")
		return t, false
	}
	i := slices.IndexFunc(m.tools, func(o toolEntry) bool { return o.name == t.name })
	if i >= 0 {
		m.errorf(t.at, "tool_defined_twice", "rename one of them", "tool %s is defined at %s already; this one is ignored", t.name, m.tools[i].at)
		return t, false
	}
	m.readKind(n, file, KindGo, &t)
	if t.kind == "" {
		return t, false
	}
	if t.program != nil {
		m.errorf(t.at, "shared_program", "declare it in the workflow that has the tools of its steps", "tool %s runs programs, whose steps call the tools of a workflow", t.name)
		return t, false
	}
	if t.kind == KindPython {
		m.errorf(t.at, "shared_python", "declare it in the workflow whose folder has its file", "tool %s is a Python function, which belongs to the folder of a workflow", t.name)
		return t, false
	}
	ui := m.table(n.get("ui"), file, "ui", "ui: {component: TicketCard, mode: inline}")
	t.problem = cmp.Or(t.problem, m.strict(ui, file, "ui"))
	m.readUI(ui, file, &t)
	t.uiTool = t.component != ""
	if s := n.get("schema"); !s.absent() {
		t.schema, t.schemaAt = s, s.at(file)
	}
	return t, true
}

// use returns a copy of the shared tool that a tool names.
func (m *manifest) use(n *node, file string) (toolEntry, bool) {
	m.shares = true
	if !n.is(textNode) {
		m.errorf(n.at(file), "wrong_shape", "write the name of a shared tool; a program lists the tools of its steps under uses", "use must be a text")
		return toolEntry{}, false
	}
	name := n.str()
	t, ok := m.shared.tool(name)
	if !ok {
		fix := didYouMean(name, m.shared.names())
		if fix == "" {
			fix = "define it in " + sharedSection + ".yaml next to the workflow folders: tools: [" + exampleShared + "]"
		}
		m.errorf(n.at(file), "unknown_tool", fix, "it uses the unknown shared tool %s", quoted(name))
		return toolEntry{}, false
	}
	t.shared = name
	return *t, true
}

// tool finds a tool by its name, or an agent by its id.
func (s *shared) tool(name string) (*toolEntry, bool) {
	if s == nil {
		return nil, false
	}
	if t, ok := s.entries[name]; ok {
		c := *t
		return &c, true
	}
	return nil, false
}

func (s *shared) has(name string) bool {
	_, ok := s.tool(name)
	return ok
}

func (s *shared) server(name string) (serverEntry, bool) {
	if s == nil {
		return serverEntry{}, false
	}
	e, ok := s.servers[name]
	return e, ok
}

func (s *shared) names() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.entries))
}

// version is the digest, "" without the file.
func (s *shared) version() string {
	if s == nil {
		return ""
	}
	return s.digest
}

// isOwnFormat reports whether a file has a format of oneturn.
func isOwnFormat(base string) bool {
	return strings.HasPrefix(base, "oneturn.") || strings.HasPrefix(base, sharedSection+".")
}
