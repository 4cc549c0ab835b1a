package handoff

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/nearest"
)

// names resolves the names in rules: aliases of the user and of the end first, then agents, exactly or without regard
// to case.
type names struct {
	agents []string // empty: not known, every name is an agent
	exact  map[string]bool
	folded map[string][]string
}

func newNames(agents []string) names {
	n := names{agents: agents, exact: make(map[string]bool), folded: make(map[string][]string)}
	for _, a := range agents {
		n.exact[a] = true
		n.folded[strings.ToLower(a)] = append(n.folded[strings.ToLower(a)], a)
	}
	return n
}

// alias returns User or Terminate if name is one of their aliases, whatever its case and white space; else "".
func alias(name string) string {
	switch strings.ToLower(strings.Join(strings.Fields(name), "")) {
	case "user", "user_proxy", "userproxy", "user-agent", "useragent":
		return User
	case "terminate", "end", "stop":
		return Terminate
	}
	return ""
}

// IsUser reports whether a name stands for the person of the chat: [User] or one of its aliases.
func IsUser(name string) bool { return alias(name) == User }

// agent returns the agent with this name, "" if there is none or several differ from it in case only.
func (n names) agent(name string) string {
	name = events.Name(strings.TrimSpace(name))
	if len(n.agents) == 0 || n.exact[name] {
		return name
	}
	if alike := n.folded[strings.ToLower(name)]; len(alike) == 1 {
		return alike[0]
	}
	return ""
}

// unknownFix is the fix for a name that no agent has.
func (n names) unknownFix(name string) string {
	if near := nearestName(name, n.agents); near != "" {
		return "did you mean " + shown(near) + "?"
	}
	return "name an agent of the workflow, user or terminate"
}

// nearestName returns the known name that a misspelt one was probably meant to be, or "".
func nearestName(name string, known []string) string {
	return nearest.Of(name, slices.Sorted(slices.Values(known)), nearest.Rule{
		Fold: strings.ToLower, Edits: func(_, candidate string) int { return (len(candidate) + 1) / 3 },
	})
}
