package handoff

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// rule reads one rule with one target.
func (c *compiler) rule(e entry) {
	r := &Rule{Number: c.number(), pointer: e.pointer, manifest: c.manifest}
	if r.Number >= MaxRules {
		return
	}
	r.File, r.Line = c.locate(e.pointer)
	if r.From = c.sources(e); len(r.From) == 0 {
		return
	}
	r.Description, _ = e.fields["description"].(string)
	var code string
	if r.To, code = c.target(e); code == "" {
		code = c.conditions(e, r)
	}
	if code == "" && e.unknownKey {
		code = "unknown_key"
	}
	if code != "" {
		for _, source := range r.From {
			c.rules.ignored[source] = append(c.rules.ignored[source], Ignored{r.Number, code})
		}
		return
	}
	c.rules.rules = append(c.rules.rules, r)
	for _, source := range r.From {
		c.rules.bySource[source] = append(c.rules.bySource[source], r)
	}
}

// sources returns the agents that the rule is for: one or several, without unknown ones.
func (c *compiler) sources(e entry) []string {
	value, key := e.source, ""
	if own, k := first(e.fields, sourceKeys()...); own != nil || value == nil {
		value, key = own, "/"+k
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var all []string
	for _, item := range list {
		name, isText := item.(string)
		if !isText || strings.TrimSpace(name) == "" {
			c.errorf(e.pointer, "bad_rule", "add "+sourceKeys()[0]+": the agent that speaks before", "a handoff rule has no source")
			return nil
		}
		if source := c.source(name, e.pointer+key); source != "" {
			if !slices.Contains(all, source) {
				all = append(all, source)
			}
		}
	}
	return all
}

// source returns the agent that a source names, "" if there is none.
func (c *compiler) source(name, pointer string) string {
	if alias(name) == User {
		c.hidden(name, pointer, User)
		return User
	}
	agent := c.rules.names.agent(name)
	switch {
	case alias(name) == Terminate && (len(c.Agents) == 0 || agent == ""):
		c.errorf(pointer, "unknown_agent", "name an agent of the workflow, or user", "source %s of a handoff rule is the end of the chat, which does not speak", shown(name))
		return ""
	case alias(name) == Terminate:
		c.hidden(name, pointer, Terminate)
	case agent == "":
		c.errorf(pointer, "unknown_agent", c.rules.names.unknownFix(name), "source %s of a handoff rule is not an agent of the workflow", shown(name))
	default:
		c.spelling(name, agent, pointer)
	}
	return agent
}

// hidden warns of an agent whose name is an alias.
func (c *compiler) hidden(name, pointer, of string) {
	if c.rules.names.exact[events.Name(strings.TrimSpace(name))] {
		c.warnf(pointer, "agent_hidden_by_alias", "rename the agent", "%s is an alias of %s, so no rule can choose the agent of this name", shown(name), of)
	}
}

// spelling warns of a name that is found without regard to case only.
func (c *compiler) spelling(name, agent, pointer string) {
	if events.Name(strings.TrimSpace(name)) != agent {
		c.warnf(pointer, "name_differs_in_case", "write "+agent, "%s differs from agent %s in letter case", shown(name), agent)
	}
}

// Targets of AG2 that a rule can name in transition_target.
const (
	agentTarget     = "agenttarget"
	userTarget      = "reverttousertarget"
	terminateTarget = "terminatetarget"
)

// target returns the target of the rule, or the code of the error that has been reported.
func (c *compiler) target(e entry) (target, code string) {
	written, _ := e.fields["transition_target"].(string)
	kind := folded(written)
	kindAt := e.pointer + "/transition_target"
	known := kind == agentTarget || kind == userTarget || kind == terminateTarget
	if e.fields["transition_target"] != nil && kind != "" && !known {
		c.warnf(kindAt, "unknown_transition_target", "write AgentTarget, RevertToUserTarget or TerminateTarget, or remove it", "unknown transition_target %s", shown(written))
	}
	value, key := first(e.fields, targetKeys()...)
	name, isText := value.(string)
	at := e.pointer + "/" + key
	switch {
	case value != nil && !isText:
		c.errorf(at, "no_target", "write "+key+": the name of an agent, user or terminate", "the target of a handoff rule must be a name, not %s", typeName(value))
		return "", "no_target"
	case strings.TrimSpace(name) == "" && kind == userTarget:
		return User, ""
	case strings.TrimSpace(name) == "" && kind == terminateTarget:
		return Terminate, ""
	case strings.TrimSpace(name) == "":
		c.errorf(e.pointer, "no_target", "add "+key+": an agent, user or terminate", "a handoff rule has no target")
		return "", "no_target"
	}
	meant := userTarget
	switch target = alias(name); target {
	case User:
		c.hidden(name, at, User)
	case Terminate:
		c.hidden(name, at, Terminate)
		meant = terminateTarget
	default:
		if target = c.rules.names.agent(name); target == "" {
			c.errorf(at, "unknown_agent", c.rules.names.unknownFix(name), "target %s of a handoff rule is not an agent of the workflow", shown(name))
			return "", "unknown_agent"
		}
		c.spelling(name, target, at)
		meant = agentTarget
	}
	if known && kind != meant {
		c.warnf(kindAt, "transition_target_disagrees", "remove transition_target", "transition_target is %s, but the target is %s, which counts", shown(written), shown(name))
	}
	return target, ""
}

// folded drops what does not count in the names of kinds and scopes: case, white space, _ and -.
func folded(text string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(strings.Join(strings.Fields(text), "")))
}
