package bindings

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// The binder turns a manifest into bindings: models are compiled first, then each tool is checked and bound to
// each of its agents, and last the ways to a binding are indexed (model and agent, model alone, agent alone). A
// tool that cannot be used leaves the reason in its place.

// binder turns a draft into a workflow.
type binder struct {
	*manifest

	w      *workflow
	files  map[string]PyFile // nil = not inspected
	models map[string]*model.Model
	broken map[string]string   // model → why it cannot be used
	failed []key               // keys of tools that cannot be used, in order
	steps  map[*toolEntry]bool // what steps of programs may call, nil until isStep needs it

	components map[string]string // component → tool
	functions  map[key]place     // function name and agent → first place
	locations  map[key]string    // the same → file
	allow      guards.Guard      // holds the agents' lists; nil if there are none
	byName     map[string][]*toolEntry
	byID       map[string][]*toolEntry // agents by their ids
	several    map[stepKey]bool        // names that mean several tools
	usable     map[Kind][]string       // names for the steps of a kind of programs
	registry   map[string]Registered
}

func bind(d *parsedWorkflow, files map[string]PyFile, opts *Options, inspected bool) *workflow {
	m := d.manifest
	b := &binder{
		manifest: m, files: files, registry: opts.Registered,
		models: make(map[string]*model.Model), broken: make(map[string]string),
		components: make(map[string]string), functions: make(map[key]place), locations: make(map[key]string),
		w: &workflow{
			name: m.workflow, dir: d.dir, digest: d.digest, base: d.base, shares: m.shares, joined: m.shared.version(), tools: make(map[string]slot),
			exact: make(map[key]slot), byModel: make(map[string]slot), onlyTool: make(map[string]slot),
			registered: make(map[string]string), variables: m.variables, unreadable: m.unreadable, compatEvents: m.compatEvents,
			description: m.description,
			sources:     d.sources, uninspected: !inspected, unsure: !inspected || !d.kept() || len(d.external) > 0,
		},
	}
	if !inspected {
		b.files = nil
	}
	b.compileModels()
	b.checkRegistry()
	b.boundPairs()
	b.indexEntries()
	b.checkAllowed()
	for i := range m.tools {
		b.tool(&m.tools[i])
		b.addPresentation(&m.tools[i])
	}
	b.index()
	b.compileHandoffs()
	b.startValues(opts)
	b.checkTriggers()
	b.w.rules = newRules(b.variables, m.splitHiding)
	b.checkAgents()
	b.checkEmpty()
	b.w.compiled, b.w.visual, b.w.autoMode = b.models, m.visual, map[string]bool{}
	for _, a := range m.agents {
		if a.mozaiks {
			b.w.autoMode[a.name] = a.auto
		}
	}
	b.compileCorrections()
	b.w.imports, b.w.env = requirements(files, d.local)
	b.w.importers = importers(files)
	b.checkShims(d.local)
	b.w.shares = m.shares
	b.w.own = m.found
	b.w.shown = m.found
	return b.w
}

// boundPairs cuts the tools' agents where there are too many pairs of tool and agent.
func (b *binder) boundPairs() {
	left := maxEntries
	for i := range b.tools {
		t := &b.tools[i]
		if len(t.agents) > left {
			if left >= 0 {
				b.errorf(t.at, "too_many_entries", "split the workflow", "the tools name more than %d agents together; the rest is not bound", maxEntries)
			}
			t.agents = t.agents[:max(left, 0)]
			left = -1
			continue
		}
		left -= len(t.agents)
	}
}

// tool binds one entry for each of its agents.
func (b *binder) tool(t *toolEntry) {
	t.problem = b.checkProgram(t)
	signature, known, problem := b.signature(t)
	if problem != nil && !problem.reported {
		b.reportUnusable(t, problem)
	}
	b.checkComponent(t)
	s := b.schemasOf(t, signature, known)
	if problem == nil {
		problem = s.problem
	}
	b.addNamed(t, s, problem)
	for _, agent := range t.agents {
		k := key{b.modelOf(t, agent), agent}
		mdl := k.model
		b.checkAgent(t, agent)
		why := b.whyUnusable(t, mdl, problem)
		if a, ok := b.agent(agent); ok && !a.may(t.name) {
			why = cmp.Or(why, "the agent's list of tools does not have it")
			b.errorf(t.at, "tool_not_allowed", "add it to tools of agent "+agent, "tool %s names agent %s, whose list of tools does not have it", t.name, agent)
		}
		if why == "" {
			b.w.steps.add(t, b.binding(t, k, s))
		}
		switch {
		case why != "":
			b.fail(k, slot{why: fmt.Sprintf("tool %s of agent %s is not usable: %s", t.name, agent, why)})
		case !t.auto:
			b.fail(k, slot{manual: true, why: fmt.Sprintf("tool %s of agent %s (%s) is not called automatically: set %s", t.name, agent, t.at,
				t.at.fixFor("auto: true", "auto_invoke: true", ""))})
		default:
			bound := b.binding(t, k, s)
			b.checkBinding(t, bound, s)
			b.put(k, bound)
		}
	}
	if bound := b.w.tools[t.name].binding; bound != nil && !t.auto && b.isStep(t) {
		b.checkEffect(t, bound.Effect)
	}
}

// reportUnusable reports why a tool is not bound. A Python file that cannot be read is reported once, with all of its tools.
func (b *binder) reportUnusable(t *toolEntry, problem *bindProblem) {
	name := t.name
	if problem.at != t.at {
		name = fmt.Sprintf("%s (%s)", t.name, t.at)
	}
	if problem.at.file != t.path || t.path == "" {
		b.errorf(problem.at, "tool_unusable", problem.fix, "tool %s is not bound: %s", name, problem.text)
		return
	}
	var names []string
	for i := range b.tools {
		if other := &b.tools[i]; other.kind == KindPython && other.path == t.path && other.problem == nil && !slices.Contains(names, other.name) {
			names = append(names, other.name)
		}
	}
	switch {
	case len(names) < 2:
		b.errorf(problem.at, "tool_unusable", problem.fix, "tool %s is not bound: %s", name, problem.text)
	case names[0] == t.name:
		b.errorf(problem.at, "tool_unusable", problem.fix, "tools %s are not bound: %s", listed(names), problem.text)
	}
}

// whyUnusable returns why a tool with this model cannot be called, "" if it can. Also of a tool with a problem the
// model is checked, so that all errors are reported together.
func (b *binder) whyUnusable(t *toolEntry, mdl string, problem *bindProblem) (why string) {
	if mdl != "" {
		why = b.modelProblem(t, mdl)
	}
	if problem != nil {
		why = problem.String()
	}
	return why
}

// modelOf gives the model of a tool when this agent calls it.
func (b *binder) modelOf(t *toolEntry, agent string) string {
	return cmp.Or(t.model, b.w.registered[agent])
}

// addNamed notes a tool under its name, bound to no agent: its model is that for its first one.
func (b *binder) addNamed(t *toolEntry, s toolSchemas, problem *bindProblem) {
	k := key{}
	if k.model = t.model; len(t.agents) > 0 {
		k.model = b.modelOf(t, t.agents[0])
	}
	entry := slot{}
	if why := b.whyUnusable(t, k.model, problem); why != "" {
		entry.why = fmt.Sprintf("tool %s is not usable: %s", t.name, why)
	} else {
		entry.binding = b.binding(t, k, s)
		if len(t.agents) == 0 {
			b.w.steps.add(t, entry.binding)
		}
	}
	if t.program != nil {
		b.w.programs = append(b.w.programs, t.name)
	}
	b.w.tools[t.name] = entry
	b.w.order = append(b.w.order, t.name)
}

// signature finds the parameters of a Python tool. known is false if they cannot be found
// without running the file; the problem is why the tool cannot work at all.
func (b *binder) signature(t *toolEntry) (params []Param, known bool, _ *bindProblem) {
	switch {
	case t.problem != nil:
		return nil, false, t.problem
	case t.kind != KindPython:
		return nil, true, nil
	}
	file, ok := b.files[t.path]
	if !ok {
		return nil, false, nil
	}
	if file.Error != "" {
		return nil, false, &bindProblem{at: place{t.path, file.ErrorLine}, text: file.Error, fix: "correct the Python code there"}
	}
	if fn, ok := file.Functions[t.function]; ok {
		return fn.Params, !takesKeywordsAlone(fn.Params), nil
	}
	if file.Dynamic || slices.Contains(file.Names, t.function) {
		b.infof(t.at, "signature_unknown", "define the function with def in this file",
			"%s may define %s in a way that is not plain to see; its parameters are mapped when it is called", t.path, t.function)
		return nil, false, nil
	}
	names := slices.Collect(maps.Keys(file.Functions))
	return nil, false, &bindProblem{
		at: t.at, text: fmt.Sprintf("%s has no function %s", t.path, quoted(t.function)),
		fix: thereOr(t.function, names, "define it there with def"),
	}
}

// takesKeywordsAlone reports whether **kwargs is all that a function has for its fields: they go there
// under their own names.
func takesKeywordsAlone(params []Param) bool {
	keywords := false
	for _, p := range params {
		switch {
		case p.Kind == VarKeyword:
			keywords = true
		case p.Kind != VarPositional && p.Name != contextParameter && p.Name != "self":
			return false
		}
	}
	return keywords
}

func (b *binder) binding(t *toolEntry, k key, s toolSchemas) *Binding {
	bound := &Binding{
		Workflow: b.workflow, Dir: b.w.dir, Agent: k.agent, ModelName: k.model, Tool: t.name, Description: t.description,
		Kind: t.kind, Target: t.target, Program: t.program, Shared: t.shared, MaxAttempts: cmp.Or(t.policy.attempts, b.defaults.attempts, DefaultMaxAttempts),
		Timeout: cmp.Or(t.policy.timeout, b.defaults.timeout), Input: s.input, Output: s.output, InputSchema: s.inputSchema, OutputSchema: s.outputSchema,
		Limits: t.limits, Guards: t.guards, Component: t.component, Display: t.mode, Secret: t.secret, Model: b.models[k.model],
		AcceptsContext: t.target == nil, Enterprise: b.enterprise, Digest: b.w.digest, CompatSilent: b.compatSilent, CompatEvents: b.compatEvents, RunOnKeyReuse: b.reuse == reuseRun, FollowKeyReuse: b.reuse == reuseRefuse, at: t.at,
	}
	bound.Effect, bound.EffectWhy = b.effect(t)
	bound.EffectDeclared = t.policy.effect != "" || b.defaults.effect != "" || t.program != nil
	if bound.Effect == EffectNone && !t.uiTool {
		bound.Cache = t.cache
	}
	if b.allow != nil {
		bound.Guards = append([]guards.Guard{b.allow}, t.guards...)
	}
	bound.declared = declare(bound)
	if t.kind != KindPython {
		return bound
	}
	bound.File, bound.Function, bound.SignatureUnknown = t.path, t.function, !s.known
	if s.known {
		bound.parameters, bound.AcceptsContext = newParameters(s.params)
		if !isOwnFormat(path.Base(t.at.file)) { // MozaiksAI leaves **kwargs empty next to named parameters
			bound.spilled, bound.parameters.rest = bound.parameters.rest, false
		}
		bound.unclear = bound.parameters.ambiguous(bound.declared.fields)
	}
	return bound
}

// effect returns the effect of a tool and where it comes from.
func (b *binder) effect(t *toolEntry) (effect Effect, why string) {
	switch {
	case t.program != nil:
		return EffectProgram, "each step has the effect of its tool"
	case t.policy.effect != "":
		return t.policy.effect, fmt.Sprintf("effect of the tool (%s)", t.policy.at)
	case b.defaults.effect != "":
		return b.defaults.effect, fmt.Sprintf("defaults (%s)", b.defaults.at)
	case completes(t):
		return EffectNone, "asking a model for a completion changes nothing"
	case t.uiTool:
		return EffectReplay, "a UI tool without effect"
	case trustsMetadata(t.target):
		return EffectUnsafe, "not declared in the manifest: the effect that the service or server declares applies, else this one"
	default:
		return EffectUnsafe, "the default, as no effect is declared"
	}
}

// DiscoversEffect reports whether the effect is the one that the tool itself declares: the manifest names
// none and trusts the tool. A tool without a target is part of the worker, and trusted.
func (b *Binding) DiscoversEffect() bool {
	return !b.EffectDeclared && (b.Target == nil || trustsMetadata(b.Target))
}

// trustsMetadata reports whether the manifest accepts the effect that the called tool declares.
func trustsMetadata(to target.Target) bool {
	switch to := to.(type) {
	case *target.NATS:
		return to.TrustMetadata
	case *target.MCP:
		return to.Server != nil && to.Server.TrustAnnotations
	case *target.Agent:
		return to.NATS != nil && to.NATS.TrustMetadata
	default:
		return false
	}
}

// completes reports whether a tool is a model that is asked for a completion.
func completes(t *toolEntry) bool {
	agent, ok := t.target.(*target.Agent)
	return ok && agent.Completions != nil
}

// put binds; of two tools for one agent and model the later one counts.
func (b *binder) put(k key, bound *Binding) {
	if old := b.w.exact[k].binding; old != nil {
		off := old.at.fixFor("auto: false", "auto_invoke: false", "")
		fix := "set " + off + " on the others, or give them other agents"
		if off == "" {
			fix = "bind the others to another agent or model"
		}
		text := fmt.Sprintf("agent %s has several automatic tools; %s (%s) is never called, %s is", k.agent, old.Tool, old.at, bound.Tool)
		if step, program := stepAndProgram(old, bound); step != nil {
			text = fmt.Sprintf("turns of agent %s run tool %s and not %s (%s): both are automatic", k.agent, bound.Tool, old.Tool, old.at)
			fix = cmp.Or(step.at.fixFor("set auto: false on "+step.Tool+", so that only steps of "+program.Tool+" call it", "set auto_invoke: false on "+step.Tool, ""), fix)
		}
		b.warnf(bound.at, "tool_shadowed", fix, "%s", text)
		b.w.bindings = slices.DeleteFunc(b.w.bindings, func(o *Binding) bool { return o == old })
	}
	b.w.exact[k] = slot{binding: bound}
	b.w.bindings = append(b.w.bindings, bound)
}

// stepAndProgram returns the tool that runs programs and the one that may be a step of it, nil if they are not such a pair.
func stepAndProgram(a, b *Binding) (step, program *Binding) {
	switch {
	case a.Program == nil && b.Program != nil:
		return a, b
	case a.Program != nil && b.Program == nil:
		return b, a
	}
	return nil, nil
}

// fail notes why a key leads nowhere, unless another tool is bound to it.
func (b *binder) fail(k key, why slot) {
	if b.w.exact[k].binding == nil {
		b.w.exact[k] = why
		b.failed = append(b.failed, k)
	}
}

// index fills the ways to a binding that do not name model and agent both.
func (b *binder) index() {
	for _, k := range b.failed {
		why := b.w.exact[k]
		why.binding = nil
		if k.model != "" {
			b.w.byModel[k.model] = why
		}
		b.w.onlyTool[k.agent] = why
	}
	count := make(map[string]int)
	for _, bound := range b.w.bindings {
		if bound.ModelName != "" {
			b.w.byModel[bound.ModelName] = slot{binding: bound}
		}
		b.w.onlyTool[bound.Agent] = slot{binding: bound}
		if count[bound.Agent]++; count[bound.Agent] > 1 {
			b.w.onlyTool[bound.Agent] = slot{why: fmt.Sprintf("agent %s has several tools: the event must name the model", bound.Agent)}
		}
	}
}
