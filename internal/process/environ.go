package process

import (
	"slices"
	"strings"
)

const (
	alwaysAllowed = "PATH HOME LANG LC_* TZ TMPDIR VIRTUAL_ENV SYSTEMROOT"
	neverByPrefix = "ONETURN_ NATS_"
)

// Environment returns the variables of own, a process environment, that a child may see: what
// any program needs, and what the allow-list of NAME and PREFIX_* names. The worker's own
// settings and credentials (ONETURN_*, NATS_*) are never among them.
func Environment(own, allow []string) []string {
	allow = append(strings.Fields(alwaysAllowed), allow...)
	var env []string
	for _, entry := range own {
		if name, _, _ := strings.Cut(entry, "="); Allowed(name, allow) {
			env = append(env, entry)
		}
	}
	return env
}

// Allowed reports whether an allow-list of NAME and PREFIX_* holds name. No list holds the worker's own settings and
// credentials.
func Allowed(name string, allow []string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	if slices.ContainsFunc(strings.Fields(neverByPrefix), begins) {
		return false
	}
	return slices.ContainsFunc(allow, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return name == pattern || wild && prefix != "" && strings.HasPrefix(name, prefix)
	})
}
