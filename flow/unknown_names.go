package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What is wrong with a reference of an orchestration that leads to no earlier result and no binding: most often it leads to
// a step that has not ended yet, or has no key.

// whyUnknown returns the rest of the message about a reference with this path.
func (u *agentUses) whyUnknown(path []string) string {
	word, rest := path[0], path
	if len(path) > 1 && (path[0] == "result" || path[0] == "bindings") {
		word, rest = path[1], path[1:]
	}
	if path[0] != "bindings" {
		if why := u.notYet(rest); why != "" {
			return why
		}
		if why := u.notAKey(word); why != "" {
			return why
		}
	}
	const unknown = "is neither the key of an earlier step nor a binding; "
	all := u.names.all()
	if len(all) == 0 {
		return unknown + "there are none here: give an earlier step a result_key, or set bindings"
	}
	return unknown + "known: " + listed(all) + "." + u.meant(path[0], word)
}

// notYet explains a reference to a step that has not ended when the call starts.
func (u *agentUses) notYet(path []string) string {
	for i := u.at; i < len(u.program.Steps); i++ {
		step := &u.program.Steps[i]
		if step.Group && begins(path, step.Key) && i == u.at {
			return "refers to the group that the agent is in, which has no value until all of them have ended: move the agent to a later step"
		}
		for j := range step.Calls {
			switch other := &step.Calls[j]; {
			case !begins(path, other.Key):
			case other == u.call:
				return "refers to the output of the same agent"
			case i == u.at:
				return fmt.Sprintf("refers to %s, which runs at the same time, as all agents of a group do: move the agent that needs it to a later step", clip(other.ID))
			default:
				return fmt.Sprintf("refers to %s, which runs later: steps run in the order of the list", clip(other.ID))
			}
		}
		if i > u.at && begins(path, step.Key) {
			return fmt.Sprintf("refers to %s, which runs later: steps run in the order of the list", clip(step.ID))
		}
	}
	return ""
}

// notAKey explains a reference to a step by its id, or by its agent.
func (u *agentUses) notAKey(word string) string {
	for i := range u.at {
		step := &u.program.Steps[i]
		if step.ID == word {
			return "is the id of a step: " + referTo(step.Key)
		}
		for j := range step.Calls {
			if call := &step.Calls[j]; call.ID == word || call.Tool == word {
				return "is the agent of step " + clip(call.ID) + ": " + referTo(call.Key)
			}
		}
	}
	return ""
}

// referTo states how the output of a step with this key is referred to.
func referTo(key string) string {
	if key == "" {
		return "give it a result_key, and refer to that"
	}
	return "refer to its result_key, " + clip(key)
}

// begins reports whether a path begins with a key, which may contain dots.
func begins(path []string, key string) bool {
	text := strings.Join(path, ".")
	return key != "" && (text == key || strings.HasPrefix(text, key+"."))
}

// meant suggests the name that a misspelt one may have been meant as. The first word of the path decides which there are.
func (u *agentUses) meant(first, word string) string {
	results, bindings := slices.Sorted(maps.Keys(u.names.results)), []string(nil)
	if len(u.names.group)+len(u.names.bindings) <= maxListed {
		bindings = slices.Sorted(maps.Keys(u.names.bindings))
		bindings = append(bindings, slices.Sorted(maps.Keys(u.names.group))...)
	}
	if first != "bindings" {
		if near := u.c.nearest(word, results); near != "" {
			return fmt.Sprintf(" Did you mean %q?", near)
		}
	}
	if first != "result" {
		if near := u.c.nearest(word, bindings); near != "" {
			return fmt.Sprintf(" Did you mean %q?", "bindings."+near)
		}
	}
	return ""
}
