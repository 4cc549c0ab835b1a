package bindings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
)

// key is what a turn names.
type key struct{ model, agent string }

// slot is what a key leads to: a binding, or the reason why there is none.
type slot struct {
	binding *Binding
	why     string
	manual  bool // the tool is there, but not called automatically
}

// workflow is one workflow ready for use. It is immutable.
type workflow struct {
	name, dir, digest string

	exact      map[key]slot
	byModel    map[string]slot
	onlyTool   map[string]slot // agent → its tool, if it has one only
	registered map[string]string
	bindings   []*Binding
	agents     []string
	models     []string
	unreadable []place

	variables    []Variable
	imports, env []string
	uninspected  bool // the Python files could not be inspected; the next load tries again

	own   []Diagnostic // of this version
	shown []Diagnostic // own, or those of a newer version that was not taken
}

// binder turns a draft into a workflow.
type binder struct {
	*manifest

	w      *workflow
	files  map[string]PyFile // nil = not inspected
	models map[string]*model.Model
	broken map[string]string // model → why it cannot be used
	failed []key             // keys of tools that cannot be used, in order

	components map[string]string // component → tool
	functions  map[key]place     // function name and agent → first place
	locations  map[key]string    // the same → file
}

func bind(d *draft, files map[string]PyFile, inspected bool) *workflow {
	m := d.manifest
	b := &binder{
		manifest: m, files: files,
		models: make(map[string]*model.Model), broken: make(map[string]string),
		components: make(map[string]string), functions: make(map[key]place), locations: make(map[key]string),
		w: &workflow{
			name: m.workflow, dir: d.dir, digest: d.digest,
			exact: make(map[key]slot), byModel: make(map[string]slot), onlyTool: make(map[string]slot),
			registered: make(map[string]string), variables: m.variables, unreadable: m.unreadable,
			uninspected: !inspected,
		},
	}
	if !inspected {
		b.files = nil
	}
	b.compileModels()
	b.checkRegistry()
	b.boundPairs()
	for i := range m.tools {
		b.tool(&m.tools[i])
	}
	b.index()
	b.checkAgents()
	b.checkEmpty()
	b.w.imports, b.w.env = requirements(files, d.local)
	b.w.own = m.found
	b.w.shown = m.found
	return b.w
}

// compileModels compiles each model; a fault costs the model that has it.
func (b *binder) compileModels() {
	byName := make(map[string]modelEntry, len(b.manifest.models))
	var defs []model.Definition
	for _, e := range b.manifest.models {
		byName[e.name] = e
		b.w.models = append(b.w.models, e.name)
		if e.schema == nil {
			defs = append(defs, model.Definition{Name: e.name, Fields: e.fields})
			continue
		}
		compiled, err := model.CompileSchema(e.name, e.schema)
		if err != nil {
			b.refused(e, err)
			continue
		}
		b.models[e.name] = compiled
	}
	compiled, problems := model.CompileMozaiks(defs)
	maps.Copy(b.models, compiled)
	for _, p := range problems {
		e := byName[p.Model]
		at := e.at
		top, _, _ := strings.Cut(p.Field, ".")
		if line := e.lines[top]; line > 0 {
			at.line = line
		}
		what := "model " + p.Model
		if p.Field != "" {
			what = fmt.Sprintf("field %s of %s", p.Field, what)
		}
		b.add(problemSeverity(p), at, "bad_model", what+": "+p.Message, p.Mend)
		if _, usable := b.models[p.Model]; !usable && b.broken[p.Model] == "" {
			b.broken[p.Model] = fmt.Sprintf("%s: %s: %s", at, what, p.Message)
		}
	}
}

// refused reports each fault of a schema at its line.
func (b *binder) refused(e modelEntry, err error) {
	problems := []model.Problem{{Message: err.Error(), Mend: "mend the schema"}}
	if faulty := new(model.SchemaError); errors.As(err, &faulty) {
		problems = faulty.Problems
	}
	for i, p := range problems {
		at, message := e.at, p.Message
		if p.Field != "" {
			message = fmt.Sprintf("%s (%s)", p.Message, quoted(p.Field))
		}
		if line := e.source.lineOf(p.Field); line > 0 {
			at.line = line
		}
		b.errorf(at, "bad_model", p.Mend, "model %s cannot be used: %s", e.name, message)
		if i == 0 {
			b.broken[e.name] = fmt.Sprintf("%s: %s; %s", at, message, p.Mend)
		}
	}
}

func problemSeverity(p model.Problem) Severity {
	if p.Severity == model.SeverityWarning {
		return SeverityWarning
	}
	return SeverityError
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

// checkRegistry reports agents that are registered with a model that does not exist.
func (b *binder) checkRegistry() {
	for _, agent := range slices.Sorted(maps.Keys(b.registered)) {
		r := b.registered[agent]
		b.w.registered[agent] = r.model
		if !slices.Contains(b.w.models, r.model) {
			b.errorf(r.at, "unknown_model", b.modelMend(r.model), "agent %s is registered with the unknown model %s", agent, quoted(r.model))
		}
	}
}

// tool binds one entry for each of its agents.
func (b *binder) tool(t *toolEntry) {
	signature, known, fault := b.signature(t)
	if fault != nil {
		name := t.name
		if fault.at != t.at {
			name = fmt.Sprintf("%s (%s)", t.name, t.at)
		}
		b.errorf(fault.at, "tool_unusable", fault.mend, "tool %s is not bound: %s", name, fault.text)
	}
	if b.components[t.component] == "" {
		b.components[t.component] = t.name
	} else if t.component != "" && b.components[t.component] != t.name {
		b.warnf(t.at, "component_shared", "give each tool its own component",
			"tools %s and %s share the UI component %s", b.components[t.component], t.name, quoted(t.component))
	}
	for _, agent := range t.agents {
		mdl := t.model
		if mdl == "" {
			mdl = b.w.registered[agent]
		}
		k := key{mdl, agent}
		b.checkOwner(t, agent)
		why := ""
		if fault != nil {
			why = fault.String()
		} else if mdl != "" {
			why = b.modelFault(t, mdl)
		}
		switch {
		case why != "":
			b.fail(k, slot{why: fmt.Sprintf("tool %s of agent %s is not usable: %s", t.name, agent, why)})
		case !t.auto:
			b.fail(k, slot{manual: true, why: fmt.Sprintf("tool %s of agent %s (%s) is not called automatically: set %s", t.name, agent, t.at,
				t.at.words("auto: true", "auto_invoke: true", ""))})
		default:
			b.put(k, b.binding(t, k, signature, known))
		}
	}
}

// checkOwner warns of agents that are not there or never call a tool.
func (b *binder) checkOwner(t *toolEntry, agent string) {
	if a, ok := b.agent(agent); !ok && len(b.agents) > 0 {
		b.warnf(t.at, "unknown_agent", didYouMean(agent, b.agentNames()), "tool %s names the unknown agent %s", t.name, quoted(agent))
	} else if ok && t.auto && !a.auto {
		b.warnf(t.at, "agent_not_auto", "set auto_tool_mode: true for the agent",
			"tool %s is called automatically, but agent %s has no auto_tool_mode", t.name, agent)
	}
	if t.kind != KindPython {
		return
	}
	k := key{t.function, agent}
	if at, seen := b.functions[k]; seen && b.locations[k] != t.path {
		b.warnf(t.at, "function_name_shared", "rename one of them", "agent %s has two functions called %s: here and at %s", agent, t.function, at)
	}
	b.functions[k], b.locations[k] = t.at, t.path
}

func (b *binder) modelFault(t *toolEntry, mdl string) string {
	if b.models[mdl] != nil {
		return ""
	}
	if why := b.broken[mdl]; why != "" {
		return fmt.Sprintf("model %s cannot be used (%s)", quoted(mdl), why)
	}
	if t.model == mdl {
		b.errorf(t.at, "unknown_model", b.modelMend(mdl), "tool %s names the unknown model %s", t.name, quoted(mdl))
	}
	return fmt.Sprintf("%s: model %s is not defined; %s", t.at, quoted(mdl), b.modelMend(mdl))
}

// modelMend says what to do about a model that is not there.
func (b *binder) modelMend(name string) string {
	return thereOr(name, b.w.models, "define it under models")
}

// signature finds the parameters of a Python tool. known is false if they cannot be told
// without running the file; fault says why the tool cannot work at all.
func (b *binder) signature(t *toolEntry) (params []Param, known bool, _ *fault) {
	if t.kind == KindGo {
		return nil, true, nil
	}
	if t.fault != nil {
		return nil, false, t.fault
	}
	file, ok := b.files[t.path]
	if !ok {
		return nil, false, nil
	}
	if file.Error != "" {
		return nil, false, &fault{place{t.path, file.ErrorLine}, file.Error, "correct the Python code there"}
	}
	if fn, ok := file.Functions[t.function]; ok {
		return fn.Params, true, nil
	}
	if file.Dynamic || slices.Contains(file.Names, t.function) {
		b.infof(t.at, "signature_unknown", "define the function with def in this file",
			"%s may define %s in a way that is not plain to see; its parameters are mapped when it is called", t.path, t.function)
		return nil, false, nil
	}
	names := slices.Collect(maps.Keys(file.Functions))
	return nil, false, &fault{
		t.at, fmt.Sprintf("%s has no function %s", t.path, quoted(t.function)),
		thereOr(t.function, names, "define it there with def"),
	}
}

func (b *binder) binding(t *toolEntry, k key, params []Param, known bool) *Binding {
	bound := &Binding{
		Workflow: b.workflow, Dir: b.w.dir, Agent: k.agent, ModelName: k.model, Tool: t.name, Description: t.description,
		Kind: t.kind, MaxAttempts: DefaultMaxAttempts, Timeout: t.policy.timeout,
		Component: t.component, Display: t.mode, Model: b.models[k.model],
		Digest: b.w.digest, CompatSilent: b.silent, RunOnKeyReuse: b.reuse, at: t.at,
	}
	bound.Effect, bound.EffectWhy = b.effect(t)
	switch {
	case t.policy.attempts > 0:
		bound.MaxAttempts = t.policy.attempts
	case b.defaults.attempts > 0:
		bound.MaxAttempts = b.defaults.attempts
	}
	if bound.Timeout == 0 {
		bound.Timeout = b.defaults.timeout
	}
	bound.AcceptsContext = true
	if t.kind == KindPython {
		bound.File, bound.Function = t.path, t.function
		bound.SignatureUnknown = !known
	}
	if t.kind == KindPython && known {
		var fields []string
		if bound.Model != nil {
			fields = bound.Model.Fields()
		}
		bound.parameters, bound.AcceptsContext = newParameters(params, fields)
		b.checkParameters(t, bound)
	}
	if bound.Model == nil {
		b.warnf(t.at, "agent_without_model", t.at.words("add model to the agent or to the tool", "register a model for the agent", "name a model"),
			"agent %s has no model: tool %s gets its output unchecked", k.agent, t.name)
	}
	return bound
}

// checkParameters warns of parameters that nothing fills, or not always: such a call ends as
// bad_args.
func (b *binder) checkParameters(t *toolEntry, bound *Binding) {
	if bound.Model == nil {
		return
	}
	unfilled, uncertain := bound.parameters.gaps(bound.Model.Optional())
	if len(unfilled) > 0 {
		have, it := "has", "it"
		if len(unfilled) > 1 {
			have, it = "have", "them"
		}
		b.warnf(t.at, "parameter_unfilled", "add a field for "+it+" to the model, or a default to the function",
			"%s of tool %s %s no default and model %s has no field for %s", parametersOf(unfilled), t.name, have, bound.ModelName, it)
	}
	if len(uncertain) > 0 {
		have, field := "has", "its field"
		if len(uncertain) > 1 {
			have, field = "have", "their fields"
		}
		b.warnf(t.at, "parameter_uncertain", "add a default to the function, or make "+field+" required or give a default in the model",
			"%s of tool %s %s no default, but %s of model %s may be missing: such a call ends as bad_args",
			parametersOf(uncertain), t.name, have, field, bound.ModelName)
	}
}

func parametersOf(names []string) string {
	if len(names) == 1 {
		return "parameter " + names[0]
	}
	return "parameters " + together(names)
}

// effect says which effect a tool has and where that comes from.
func (b *binder) effect(t *toolEntry) (effect Effect, why string) {
	switch {
	case t.policy.effect != "":
		return t.policy.effect, fmt.Sprintf("effect of the tool (%s)", t.policy.at)
	case b.defaults.effect != "":
		return b.defaults.effect, fmt.Sprintf("defaults (%s)", b.defaults.at)
	case t.uiTool:
		return EffectReplay, "a UI tool without effect"
	default:
		return EffectUnsafe, "nothing is said"
	}
}

// put binds; of two tools for one agent and model the later one counts.
func (b *binder) put(k key, bound *Binding) {
	if old := b.w.exact[k].binding; old != nil {
		off := old.at.words("auto: false", "auto_invoke: false", "")
		mend := "set " + off + " on the others, or give them other agents"
		if off == "" {
			mend = "bind the others to another agent or model"
		}
		b.warnf(bound.at, "tool_shadowed", mend,
			"agent %s has several automatic tools; %s (%s) is never called, %s is", k.agent, old.Tool, old.at, bound.Tool)
		b.w.bindings = slices.DeleteFunc(b.w.bindings, func(o *Binding) bool { return o == old })
	}
	b.w.exact[k] = slot{binding: bound}
	b.w.bindings = append(b.w.bindings, bound)
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

// checkAgents warns of agents that wait for a tool that never comes.
func (b *binder) checkAgents() {
	b.w.agents = b.agentNames()
	for _, bound := range b.w.bindings {
		if !slices.Contains(b.w.agents, bound.Agent) {
			b.w.agents = append(b.w.agents, bound.Agent)
		}
	}
	for _, a := range b.agents {
		switch tool, ok := b.w.onlyTool[a.name]; {
		case !a.auto:
		case ok && tool.manual:
			b.warnf(a.at, "auto_agent_without_tool",
				a.at.words("set auto: true on one of its tools, or remove the agent", "set auto_invoke: true on one of its tools, or switch auto_tool_mode off", ""),
				"agent %s calls no tool: none of its tools is called automatically", a.name)
		case !ok:
			b.warnf(a.at, "auto_agent_without_tool",
				a.at.words("add a tool with agent: "+a.name+", or remove the agent", "add a tool for it, or switch auto_tool_mode off", ""),
				"agent %s calls no tool: no tool names it", a.name)
		}
	}
}

// checkEmpty warns of a folder that binds nothing and of which nothing else is said.
func (b *binder) checkEmpty() {
	if len(b.tools)+len(b.agents)+len(b.variables) == 0 && !b.faulty() {
		b.warnf(place{file: b.w.dir}, "nothing_bound", "write a oneturn.yaml there with agents, models and tools, or begin the folder's name with _",
			"no manifest of the folder names an agent or a tool, so nothing is bound")
	}
}
