package bindings

import (
	"slices"

	"github.com/oneturn/oneturn/internal/guards"
)

// ownAllowed reads the only tools that an agent may call. Without the key it may call all that
// name it; with an empty list none.
func (m *manifest) ownAllowed(n *node, file string, a *agentEntry) {
	if n.absent() {
		return
	}
	a.limited, a.allowed, a.allowedAt = true, n.texts(), n
	if !n.is(listNode) && !n.is(textNode) || n.is(listNode) && len(a.allowed) < len(n.items) {
		m.errorf(n.at(file), "wrong_shape", "write for example tools: [open_ticket]", "tools of agent %s must be a list of names; the agent may call those that are names only", a.name)
	}
	a.at.file = file
}

// may reports whether the agent may call a tool of this name.
func (a *agentEntry) may(tool string) bool { return !a.limited || slices.Contains(a.allowed, tool) }

// checkAllowed reports allow-lists that name tools that are not there, and makes the guard that
// holds them.
func (b *binder) checkAllowed() {
	allow := guards.Allow{}
	known := make([]string, 0, len(b.tools))
	for i := range b.tools {
		known = append(known, b.tools[i].name)
	}
	for _, a := range b.agents {
		if !a.limited {
			continue
		}
		allow[a.name] = a.allowed
		for _, name := range a.allowed {
			if len(b.entriesNamed(name)) > 0 || b.shared.has(name) || slices.Contains(b.dropped, name) {
				continue
			}
			at := place{a.at.file, a.allowedAt.lineOfText(name)}
			b.errorf(at, "unknown_tool", thereOr(name, append(b.shared.names(), known...), "define it under tools"), "tools of agent %s names the unknown tool %s", a.name, quoted(name))
		}
	}
	if len(allow) > 0 {
		b.allow, b.w.allowed = allow, allow
	}
}

// lineOfText gives the line of a text of a list.
func (n *node) lineOfText(text string) int {
	for _, item := range n.items {
		if item.str() == text {
			return item.line
		}
	}
	return n.line
}
