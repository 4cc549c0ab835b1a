package bindings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// The names in a tool that runs programs are checked against all tools of the workflow: each leads to exactly one
// tool for each agent that calls the program.

// checkProgram returns why a tool that runs programs cannot be used: it names a tool that does not exist, or a name
// leads to several tools. All findings are reported.
func (b *binder) checkProgram(t *toolEntry) *bindProblem {
	if t.program == nil {
		return t.problem
	}
	o := &entryReader{manifest: b.manifest, what: "tool " + t.name, file: t.at.file}
	for _, name := range t.program.Uses {
		if len(b.entriesOf(t.program.Kind, name)) == 0 {
			at := place{t.at.file, t.programNode.get("uses").lineOfText(name)}
			b.unknownStep(o, at, t, t.program.Kind, name, "uses names the unknown tool "+quoted(name))
		}
	}
	b.checkProgramAgent(o, t, "planner", t.program.Planner)
	b.checkProgramAgent(o, t, "respond", t.program.Respond)
	b.checkAmbiguous(o, t)
	if t.problem != nil { // reported before
		return t.problem
	}
	return o.problem
}

// checkProgramAgent checks the tool that plans or answers.
func (b *binder) checkProgramAgent(o *entryReader, t *toolEntry, key, name string) {
	if name == "" {
		return
	}
	at := t.programNode.get(key).at(t.at.file)
	found := b.entriesOf(KindOrchestrate, name)
	switch {
	case len(found) == 0:
		b.unknownStep(o, at, t, KindOrchestrate, name, key+" names the unknown tool "+quoted(name))
	case found[0].program != nil:
		o.refusef(at, "unknown_tool", "name an agent", "%s names %s, which runs programs itself", key, quoted(name))
	case b.ambiguous(KindOrchestrate, nil, name):
		o.refusef(at, "ambiguous_tool", "rename one of them, or give the tool an input schema", "%s names %s, which could mean several tools, or one with several models", key, quoted(name))
	}
}

// unknownStep refuses a program that names a tool which does not exist. One whose errors are reported is not unknown.
func (b *binder) unknownStep(o *entryReader, at place, t *toolEntry, kind Kind, name, text string) {
	if slices.Contains(b.dropped, strings.TrimPrefix(name, "agent:")) {
		o.problem = cmp.Or(o.problem, &bindProblem{at: at, text: "it names tool " + quoted(name) + ", which has errors", fix: "correct that tool", reported: true})
		return
	}
	others := slices.DeleteFunc(slices.Concat(b.stepNames(kind), b.dropped), func(other string) bool { return other == t.name || other == "" })
	o.refusef(at, "unknown_tool", thereOr(name, others, "define it under tools"), "%s", text)
}

// checkAmbiguous refuses a program whose steps can use names that could mean several tools.
func (b *binder) checkAmbiguous(o *entryReader, t *toolEntry) {
	reported := map[string]bool{}
	for _, agent := range t.callers() {
		for _, name := range b.stepsOf(t, agent) {
			if reported[name] || !b.ambiguousForAny(t.program.Kind, name) || !b.ambiguous(t.program.Kind, &agent, name) {
				continue
			}
			reported[name] = true
			o.refusef(t.at, "ambiguous_tool", "rename one of them, give the tool an input schema, or list the tools of steps under uses",
				"a step that names %s could mean several tools, or one with several models", quoted(name))
		}
	}
}

// ambiguousForAny is ambiguous without an agent, computed once: a manifest can name a tool very often.
func (b *binder) ambiguousForAny(kind Kind, name string) bool {
	k := stepKey{kind, name}
	several, known := b.several[k]
	if !known {
		several = b.ambiguous(kind, nil, name)
		b.several[k] = several
	}
	return several
}

// stepKey is what a step of a program names.
type stepKey struct {
	kind Kind
	name string
}

// isStep reports whether steps of a program may call t.
func (b *binder) isStep(t *toolEntry) bool {
	if b.steps == nil {
		b.steps = make(map[*toolEntry]bool)
		all := map[Kind]bool{} // whose steps may call every tool of the workflow
		for i := range b.tools {
			if p := &b.tools[i]; p.program != nil {
				b.addSteps(p, all)
			}
		}
	}
	return b.steps[t]
}

// addSteps notes what steps of p may call.
func (b *binder) addSteps(p *toolEntry, all map[Kind]bool) {
	for _, agent := range p.callers() {
		if a, ok := b.agent(agent); p.program.Uses == nil && (!ok || !a.limited) {
			if all[p.program.Kind] {
				continue
			}
			all[p.program.Kind] = true
		}
		for _, name := range b.stepsOf(p, agent) {
			for _, step := range b.entriesOf(p.program.Kind, name) {
				b.steps[step] = true
			}
		}
		if p.program.Uses != nil {
			return // the same for each agent
		}
	}
}

// callers returns the agents of a tool, or "" if it has none.
func (t *toolEntry) callers() []string {
	if len(t.agents) == 0 {
		return []string{""}
	}
	return t.agents
}

// indexEntries lists the tools by their names, and agents by agent:<id> where no tool has that name.
func (b *binder) indexEntries() {
	b.byName = make(map[string][]*toolEntry, len(b.tools))
	b.byID = make(map[string][]*toolEntry)
	b.several, b.usable = make(map[stepKey]bool), make(map[Kind][]string)
	for i := range b.tools {
		t := &b.tools[i]
		b.byName[t.name] = append(b.byName[t.name], t)
		if agent, ok := t.target.(*target.Agent); ok {
			b.byID[agent.ID] = append(b.byID[agent.ID], t)
		}
	}
}

// entriesOf returns the tools with a name that steps use: an orchestration names agents by their ids first.
func (b *binder) entriesOf(kind Kind, name string) []*toolEntry {
	if kind == KindOrchestrate {
		if found := b.entriesNamed("agent:" + name); len(found) > 0 {
			return found
		}
	}
	return b.entriesNamed(name)
}

func (b *binder) entriesNamed(name string) []*toolEntry {
	if found := b.byName[name]; len(found) > 0 {
		return found
	}
	if id, isAgent := strings.CutPrefix(name, "agent:"); isAgent {
		return b.byID[id]
	}
	return nil
}

// stepsOf returns the names that steps may use when this agent calls the program.
func (b *binder) stepsOf(t *toolEntry, agent string) []string {
	if t.program.Uses != nil {
		return t.program.Uses
	}
	if a, ok := b.agent(agent); ok && a.limited {
		return a.allowed
	}
	return b.stepNames(t.program.Kind)
}

// stepNames returns the names of all tools as steps of a program use them.
func (b *binder) stepNames(kind Kind) []string {
	if names, ok := b.usable[kind]; ok {
		return names
	}
	names := make([]string, 0, len(b.tools))
	for i := range b.tools {
		name := b.tools[i].name
		if agent, ok := b.tools[i].target.(*target.Agent); ok && kind == KindOrchestrate {
			name = agent.ID
		}
		names = append(names, name)
	}
	b.usable[kind] = sortedSet(names)
	return b.usable[kind]
}

// ambiguous reports whether a name leads to several tools, or to one tool that takes different arguments: as it is
// bound for the agent, else for any. Without an agent all are compared.
func (b *binder) ambiguous(kind Kind, agent *string, name string) bool {
	type variant struct {
		at    place
		model string
	}
	var first, ofAgent *variant
	several, severalOfAgent := false, false
	for _, t := range b.entriesOf(kind, name) {
		for _, caller := range t.callers() {
			v := variant{at: t.at}
			if t.input == nil && t.program == nil {
				v.model = b.modelOf(t, caller)
			}
			if first = cmp.Or(first, &v); *first != v {
				several = true
			}
			if agent == nil || caller != *agent {
				continue
			}
			if ofAgent = cmp.Or(ofAgent, &v); *ofAgent != v {
				severalOfAgent = true
			}
		}
	}
	if ofAgent != nil {
		return severalOfAgent
	}
	return several
}
