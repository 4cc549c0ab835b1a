package bindings

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/internal/plural"
)

// Checks of what a manifest joins: agents, models, tools and components that do not belong together. They only
// report; what a finding means for a binding is decided in bind.go.

// checkRegistry reports agents that are registered with a model that does not exist.
func (b *binder) checkRegistry() {
	for _, agent := range slices.Sorted(maps.Keys(b.registered)) {
		r := b.registered[agent]
		b.w.registered[agent] = r.model
		if !slices.Contains(b.w.models, r.model) {
			b.errorf(r.at, "unknown_model", b.modelFix(r.model), "agent %s is registered with the unknown model %s", agent, quoted(r.model))
		}
	}
}

// checkAgent warns of agents that are not there or never call a tool.
func (b *binder) checkAgent(t *toolEntry, agent string) {
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

// checkComponent warns of automatic tools that show in one component: MozaiksAI finds a tool by it.
func (b *binder) checkComponent(t *toolEntry) {
	first, seen := b.components[t.component]
	switch {
	case t.component == "" || !t.auto:
	case !seen:
		b.components[t.component] = t.name
	case first != t.name:
		b.warnf(t.at, "component_shared", "give each tool its own component", "tools %s and %s share the UI component %s", first, t.name, quoted(t.component))
	}
}

// checkEffect warns of tools that wait for people in memory, where a restart ends their turn.
func (b *binder) checkEffect(t *toolEntry, effect Effect) {
	const waits = "while a person thinks it waits in the worker's memory, it is never parked, and its turn ends as interrupted if the worker does"
	if effect != EffectUnsafe {
		return
	}
	fix := t.at.fixFor("write effect: replay, and put what has an effect before a question into a step",
		"write effect: replay, and put what has an effect before a question into a step", "set Effect: oneturn.Replay in its ToolOptions")
	switch {
	case t.uiTool:
		b.warnf(t.at, "ui_tool_unsafe", fix, "tool %s is a UI tool with effect unsafe: %s", t.name, waits)
	case t.policy.effect == "" && b.files[t.path].Functions[t.function].Asks:
		b.warnf(t.at, "asking_tool_unsafe", fix, "tool %s asks people, and its effect is unsafe because none is declared: %s", t.name, waits)
	}
}

// checkBinding warns of what will not go as its author thinks.
func (b *binder) checkBinding(t *toolEntry, bound *Binding, s toolSchemas) {
	b.checkEffect(t, bound.Effect)
	b.checkCache(t, bound.Effect)
	if t.kind == KindPython && s.known {
		b.checkParameters(t, bound)
		b.checkHints(t)
	}
	b.checkClaims(t, bound)
	if bound.Model == nil && bound.Input == nil && bound.Program == nil {
		b.warnf(t.at, "agent_without_model", t.at.fixFor("add model to the agent or to the tool", "register a model for the agent", "name a model"),
			"agent %s has no model: tool %s gets its output unchecked", bound.Agent, t.name)
	}
}

// checkHints mentions parameters that do not get what their hints name.
func (b *binder) checkHints(t *toolEntry) {
	raw := b.files[t.path].Functions[t.function].Raw
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		b.infof(t.at, "hint_not_built", "make it a dataclass, a pydantic model, a NamedTuple or an enum, or convert the value in the function",
			"parameter %s of tool %s has the hint %s, which is not built: it gets the value as JSON has it", name, t.name, raw[name])
	}
}

// checkClaims warns of fields by which an agent's output decides what the turn knows itself, such as
// whose turn it is.
func (b *binder) checkClaims(t *toolEntry, bound *Binding) {
	claims := bound.claims()
	if len(claims) == 0 {
		return
	}
	schema := "its input schema"
	if bound.Model != nil {
		schema = "model " + bound.ModelName
	}
	fix := "remove it from the schema if the tool must have the turn's own value: a parameter of that name is filled by the turn"
	if t.kind != KindPython {
		fix = "remove it from the schema if the tool must have the turn's own value, which the call carries"
	}
	b.warnf(t.at, "identity_from_model", fix, "%s of %s: the agent's output, not the turn, decides what tool %s gets for %s",
		fieldsOf(claims), schema, t.name, together(claims))
}

// checkCache reports tools whose results cannot be kept: a call that is left out has no effect.
func (b *binder) checkCache(t *toolEntry, effect Effect) {
	switch {
	case t.cache.TTL == 0:
	case t.uiTool:
		b.errorf(t.cacheAt, "bad_cache", "remove cache", "the results of tool %s are not kept: people see what a UI tool shows", t.name)
	case effect != EffectNone:
		b.errorf(t.cacheAt, "bad_cache", "write effect: none if the tool changes nothing, or remove cache",
			"the results of tool %s are not kept: its effect is %s, and a kept result would skip it", t.name, effect)
	}
}

// checkParameters warns of parameters that nothing fills, or not always: such a call ends as
// bad_args.
func (b *binder) checkParameters(t *toolEntry, bound *Binding) {
	if bound.Model == nil {
		b.checkInput(t, bound)
		return
	}
	if unclear := bound.unclear; len(unclear) > 0 {
		b.errorf(t.at, "ambiguous_parameter", "give one of them the very name of the other", "tool %s: %s, and none has the very name", t.name, strings.Join(unclear, "; "))
	}
	if spilled := slices.DeleteFunc(slices.Clone(bound.declared.fields), func(f string) bool { return len(bound.parameters.candidates(f)) > 0 }); bound.spilled && len(spilled) > 0 {
		b.infof(t.at, "kwargs_empty", "name parameters for them, or declare the tool in oneturn.yaml, where **kwargs gets them",
			"no parameter of tool %s takes %s of model %s: as in MozaiksAI, **kwargs next to named parameters stays empty", t.name, fieldsOf(spilled), bound.ModelName)
	}
	b.checkGaps(t, bound, bound.declared.fields, bound.Model.Optional(), "model "+bound.ModelName)
}

// checkInput is [binder.checkParameters] for a tool without a model, whose manifest declares its input.
func (b *binder) checkInput(t *toolEntry, bound *Binding) {
	if bound.Input == nil || t.inferInput || len(bound.Input.Fields()) == 0 {
		return
	}
	b.checkGaps(t, bound, bound.Input.Fields(), bound.Input.Optional(), "the input")
	if lost := bound.Unplaced(); len(lost) > 0 {
		fix, it := "name a parameter of the function "+lost[0], "it"
		if len(lost) > 1 {
			fix, it = "name parameters of the function "+together(lost), "them"
		}
		b.warnf(t.at, "field_without_parameter", fix+", or make "+it+" optional without a default",
			"no parameter of function %s takes %s, which the input of tool %s requires: each call ends as bad_args", t.function, fieldsOf(lost), t.name)
	}
}

// checkGaps warns of parameters that fields, listed by a schema, do not fill or not always.
func (b *binder) checkGaps(t *toolEntry, bound *Binding, fields, optional []string, schema string) {
	unfilled, uncertain := bound.parameters.gaps(fields, optional)
	to := "the model"
	if bound.Model == nil {
		to = "the input"
	}
	if len(unfilled) > 0 {
		have, it := "has", "it"
		if len(unfilled) > 1 {
			have, it = "have", "them"
		}
		b.warnf(t.at, "parameter_unfilled", "add a field for "+it+" to "+to+", or a default to the function",
			"%s of tool %s %s no default and %s has no field for %s", parametersOf(unfilled), t.name, have, schema, it)
	}
	if len(uncertain) > 0 {
		have, field := "has", "its field"
		if len(uncertain) > 1 {
			have, field = "have", "their fields"
		}
		b.warnf(t.at, "parameter_uncertain", "add a default to the function, or make "+field+" required or give a default in "+to,
			"%s of tool %s %s no default, but %s of %s may be missing: such a call ends as bad_args",
			parametersOf(uncertain), t.name, have, field, schema)
	}
}

func parametersOf(names []string) string {
	if len(names) == 1 {
		return "parameter " + names[0]
	}
	return "parameters " + together(names)
}

func fieldsOf(names []string) string {
	if len(names) == 1 {
		return "field " + names[0]
	}
	return "fields " + together(names)
}

// checkAgents warns of agents that wait for a tool that never comes.
func (b *binder) checkAgents() {
	b.w.agents, b.w.listsAgents = b.agentNames(), len(b.agents) > 0
	for _, bound := range b.w.bindings {
		if !slices.Contains(b.w.agents, bound.Agent) {
			b.w.agents = append(b.w.agents, bound.Agent)
		}
	}
	for _, a := range b.agents {
		switch tool, ok := b.w.onlyTool[a.name]; {
		case !a.auto, isOwnFormat(path.Base(a.at.file)) && b.w.handoffs.Mentions(a.name): // an agent that only talks
		case ok && tool.manual:
			b.warnf(a.at, "auto_agent_without_tool",
				a.at.fixFor("set auto: true on one of its tools, or remove the agent", "set auto_invoke: true on one of its tools, or switch auto_tool_mode off", ""),
				"agent %s calls no tool: none of its tools is called automatically", a.name)
		case !ok:
			b.warnf(a.at, "auto_agent_without_tool",
				a.at.fixFor("add a tool with agent: "+a.name+", or remove the agent", "add a tool for it, or switch auto_tool_mode off", ""),
				"agent %s calls no tool: no tool names it", a.name)
		}
	}
}

// checkEmpty warns of a folder that binds nothing, with the reason.
func (b *binder) checkEmpty() {
	if len(b.w.bindings) == 0 {
		b.w.empty = b.whyEmpty()
	}
	if !b.w.handoffs.Empty() || b.w.rules.any() { // it is about messages
		return
	}
	reported := b.hasProblems() || slices.ContainsFunc(b.found, func(d Diagnostic) bool { return d.Code == "auto_agent_without_tool" })
	if manual := b.manual(); len(b.w.bindings) == 0 && len(manual) > 0 && !reported {
		at := manual[0].at
		b.warnf(at, "nothing_bound", at.fixFor("set auto: true on the tools that agents call", "set auto_invoke: true on the tools that agents call, or tool_type: UI_Tool", ""),
			"nothing is bound: %s", b.w.empty)
		return
	}
	if len(b.tools)+len(b.agents)+len(b.variables) == 0 && !b.hasProblems() {
		b.warnf(place{file: b.w.dir}, "nothing_bound", "write a oneturn.yaml there with agents, models and tools, or begin the folder's name with _",
			"no manifest of the folder names an agent or a tool, so nothing is bound")
	}
}

// manual returns the tools that could be called, but are not called automatically.
func (b *binder) manual() []*toolEntry {
	var manual []*toolEntry
	for i := range b.tools {
		if t := &b.tools[i]; !t.auto && b.w.tools[t.name].binding != nil {
			manual = append(manual, t)
		}
	}
	return manual
}

// whyEmpty returns the reason why a workflow binds nothing.
func (b *binder) whyEmpty() string {
	manual := len(b.manual())
	switch {
	case len(b.tools) == 0 && len(b.unreadable) > 0:
		return b.unreadable[0].String() + " cannot be read"
	case len(b.tools) == 0:
		return "no manifest names a tool"
	case manual == 0:
		return "none of its tools (" + strconv.Itoa(len(b.tools)) + ") can be used"
	}
	text := strconv.Itoa(manual) + " of " + plural.Of(len(b.tools), "tool") + " could be called, but not automatically (no auto_invoke: true, and no UI_Tool)"
	if isOwnFormat(path.Base(b.tools[0].at.file)) {
		text = strconv.Itoa(manual) + " of " + plural.Of(len(b.tools), "tool") + " could be called, but not automatically (auto: false)"
	}
	return text
}
