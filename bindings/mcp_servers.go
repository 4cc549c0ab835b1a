package bindings

import (
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// MCP servers are declared by name and used by tools of any workflow. All are read first; once all tools are
// known, connect gives each tool of kind mcp its server.

// maxSessions bounds how many calls may be under way to one server.
const maxSessions = 256

const exampleServer = "servers: {files: {command: [npx, -y, \"@example/files\"]}}"

// serverEntry is an MCP server that a manifest names.
type serverEntry struct {
	server  *target.MCPServer
	problem *bindProblem
	at      place
}

// readServers reads the servers of a manifest.
func (m *manifest) readServers(n *node, file string) {
	if m.servers == nil {
		m.servers = make(map[string]serverEntry)
	}
	for _, e := range m.entries(m.table(n, file, "servers", exampleServer), file, "servers") {
		if old, twice := m.servers[e.name]; twice {
			m.warnf(e.node.at(file), "server_defined_twice", "keep one of them", "server %s is defined here and at %s; this one counts", e.name, old.at)
		}
		m.servers[e.name] = m.readServer(e, file)
	}
}

func (m *manifest) readServer(e named, file string) serverEntry {
	o := &entryReader{manifest: m, what: "server " + e.name, file: file}
	entry := serverEntry{at: e.node.at(file)}
	if n := o.object(e.node, "server", e.name+": {command: [files-server]}"); n != nil {
		entry.server = o.server(e.name, n)
	}
	entry.problem = o.problem
	return entry
}

func (o *entryReader) server(name string, n *node) *target.MCPServer {
	s := &target.MCPServer{
		Name: name, Command: o.list(n, "command", "[npx, -y, \"@example/files\"]"), Env: o.values(n, "env", wrongVariable),
		Headers: o.values(n, "headers", wrongHeader), Network: o.network(n), TrustAnnotations: o.flag(n, "trust_annotations"),
	}
	s.Sessions = o.count(n, "sessions", maxSessions)
	command, address := n.get("command"), n.get("url")
	at := n.at(o.file)
	only := func(has string, keys ...string) {
		for _, key := range keys {
			if v := n.get(key); !v.absent() {
				o.warnf(v.at(o.file), "key_unused", "remove it", "%s has %s, so %s is not used", o.what, has, key)
			}
		}
	}
	switch {
	case !command.absent() && !address.absent():
		o.refusef(address.at(o.file), "bad_server", "keep one of them", "it has both command and url")
	case !address.absent():
		s.URL = o.url(n, s.Network)
		only("a url", "env")
	case !command.absent():
		s.Dir = o.folder()
		if command.is(textNode) && strings.ContainsAny(strings.TrimSpace(command.text), " \t") {
			o.refusef(command.at(o.file), "bad_server", "write a list: command: ["+strings.Join(strings.Fields(command.text), ", ")+"]", "command is one text with blanks in it, and no shell reads it")
		}
		only("a command", "headers", "allow_http", "allow_private")
	default:
		o.refusef(at, "bad_server", "write for example "+exampleServer, "it has neither command nor url")
	}
	return s
}

// server finds the server of a tool of an MCP server: one of this workflow, else a shared one.
func (m *manifest) server(name string) (serverEntry, bool) {
	if s, ok := m.servers[name]; ok {
		return s, true
	}
	m.shares = true
	s, ok := m.shared.server(name)
	return s, ok
}

func (m *manifest) serverNames() []string {
	names := slices.Collect(maps.Keys(m.servers))
	if m.shared != nil {
		names = slices.AppendSeq(names, maps.Keys(m.shared.servers))
	}
	return sortedSet(names)
}

// connect gives the tools of MCP servers their servers, once all manifests are read.
func (m *manifest) connect() {
	for i := range m.tools {
		t := &m.tools[i]
		to, ok := t.target.(*target.MCP)
		if !ok || to.Server != nil || t.problem != nil {
			continue
		}
		s, known := m.server(t.server)
		switch {
		case !known:
			o := &entryReader{manifest: m, what: "tool " + t.name, file: t.serverAt.file}
			o.refusef(t.serverAt, "unknown_server", thereOr(t.server, m.serverNames(), "define it: "+exampleServer), "it names the unknown server %s", quoted(t.server))
			t.problem = o.problem
		case s.problem != nil:
			t.problem = &bindProblem{at: s.problem.at, text: "server " + t.server + ": " + s.problem.text, fix: s.problem.fix, reported: true}
		default:
			to.Server = s.server
		}
	}
}
