package bindings

import (
	"slices"

	"github.com/oneturn/oneturn/handoff"
)

// Handoff rules: handoffs.yaml of every generation, and the key handoffs of oneturn.yaml. Package handoff compiles them;
// here are their places in the files, the agents and variables that they may refer to, and the decider.

// handoffSource is a manifest or a part of one that has handoff rules.
type handoffSource struct {
	rules   *node
	file    string
	strict  bool
	decider *node // nil without the key
}

// readHandoffs reads handoffs.*.
func (m *manifest) readHandoffs(d document) {
	if d.root == nil {
		return
	}
	source := handoffSource{rules: d.root, file: d.file}
	source.decider = d.root.first("decider")
	if source.decider == nil {
		source.decider = d.root.get("handoffs").first("decider")
	}
	m.handoffs = append(m.handoffs, source)
	if m.pattern != "" && m.pattern != "DefaultPattern" {
		m.infof(d.root.at(d.file), "pattern_without_handoffs", "write orchestration_pattern: DefaultPattern",
			"orchestration_pattern is %s, for which MozaiksAI ignores handoff rules; here they apply", quoted(m.pattern))
	}
}

// ownHandoffs reads the key handoffs of oneturn.yaml: a list of rules, or {decider, rules}.
func (m *manifest) ownHandoffs(n *node, file string) {
	source := handoffSource{rules: n, file: file, strict: true}
	switch {
	case n.absent():
		return
	case n.is(mapNode):
		m.strict(n, file, "handoffs")
		source.decider, source.rules = n.first("decider"), n.get("rules")
	}
	if !source.rules.absent() && !source.rules.is(listNode) {
		m.errorf(source.rules.at(file), "wrong_shape", "write for example rules: [{from: A, to: B}]", "the rules of handoffs must be a list")
		source.rules = nil
	}
	m.handoffs = append(m.handoffs, source)
}

// compileHandoffs compiles the rules. It comes after the tools, of which one may be the decider.
func (b *binder) compileHandoffs() {
	if len(b.handoffs) == 0 {
		return
	}
	opts := handoff.Options{Agents: b.speakers(), Decider: b.decider()}
	for i := range b.variables {
		opts.Variables = append(opts.Variables, b.variables[i].Name)
	}
	opts.Locate = func(manifest int, pointer string) (string, int) {
		source := b.handoffs[manifest]
		return source.file, source.rules.lineOf(pointer)
	}
	manifests := make([]handoff.Manifest, len(b.handoffs))
	for i, source := range b.handoffs {
		manifests[i] = handoff.Manifest{JSON: source.rules.appendJSON(nil), Strict: source.strict}
	}
	rules, found := handoff.Compile(opts, manifests...)
	for _, f := range found {
		if f.Code == handoff.CodeNoDecider && b.namesDecider() {
			continue // one is named: why it cannot be used is reported
		}
		b.add(f.Severity, place{f.File, f.Line}, f.Code, f.Message, f.Fix)
	}
	b.w.handoffs = rules
	b.checkConditions(rules)
}

// namesDecider reports whether a manifest names a decider, also one that cannot be used.
func (b *binder) namesDecider() bool {
	return slices.ContainsFunc(b.handoffs, func(source handoffSource) bool { return source.decider != nil })
}

// speakers returns the agents that rules may name: those that the manifests define, and those that tools and models name.
// It is empty if the manifests define none.
func (b *binder) speakers() []string {
	names := b.agentNames()
	if len(names) == 0 {
		return nil
	}
	for i := range b.tools {
		names = append(names, b.tools[i].agents...)
	}
	for agent := range b.registered {
		names = append(names, agent)
	}
	return sortedSet(names)
}

// decider returns the name of the tool that judges conditions for a model, "" if there is none that can be used. The later of two
// counts.
func (b *binder) decider() string {
	name := ""
	for _, source := range b.handoffs {
		if source.decider == nil {
			continue
		}
		var wrong *bindProblem
		if name, wrong = b.agentTool("decider", source.decider, source.file); wrong != nil {
			b.errorf(source.decider.at(source.file), "bad_decider", wrong.fix, "%s", wrong.text)
		}
	}
	return name
}

// checkConditions reports variables in conditions that nothing sets, and notes them for the check of their defaults.
func (b *binder) checkConditions(rules *handoff.Rules) {
	b.conditions = make(map[string]bool)
	for _, r := range rules.List() {
		for _, name := range r.Variables() {
			if b.conditions[name] {
				continue
			}
			b.conditions[name] = true
			i := slices.IndexFunc(b.variables, func(v Variable) bool { return v.Name == name })
			if i < 0 || len(b.tools) > 0 {
				continue
			}
			if v := &b.variables[i]; len(v.Triggers) == 0 && (v.Source.Type == SourceState || v.Source.Type == SourceDerived) {
				b.warnf(v.at, "never_set", "add a trigger, or a tool that sets it",
					"context variable %s is in a condition of a handoff, and no trigger and no tool sets it", name)
			}
		}
	}
}

// Handoffs returns the handoff rules of a workflow; nil, which has no rules, if its manifests mention none.
func (s *Set) Handoffs(workflow string) *handoff.Rules {
	if w := s.find(workflow); w != nil {
		return w.handoffs
	}
	return nil
}

// Decider returns the tool that judges the conditions for a model in the handoff rules of a workflow; nil if none that can be used
// is named.
func (s *Set) Decider(workflow string) *Binding {
	if w := s.find(workflow); w != nil {
		return w.agentOf("", w.handoffs.Decider())
	}
	return nil
}
