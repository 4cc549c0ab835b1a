package flow

import (
	"maps"
	"strconv"
	"strings"
	"time"
)

// Request is the input of an orchestration: either a plan, or a prompt from which a planner makes one.
type Request struct {
	Prompt   string         // "" if there is a plan
	Plan     map[string]any // nil if there is a prompt
	Bindings map[string]any // values for references; they hide bindings of the plan
	Timeout  time.Duration  // of each step, 0 = the configured one; can only lower it
	Parallel int            // calls of a group at the same time, 0 = the configured number; can only lower it
}

// ReadRequest reads the input of an orchestration: a request, whose unknown keys are refused, or the plan itself, which has steps.
// The error is a [*Refused].
func ReadRequest(data any, o Options) (Request, error) {
	c := newCompiler(o)
	r := c.request(data)
	if err := c.refused(KindOrchestration, o.Tools); err != nil {
		return Request{}, err
	}
	return r, nil
}

func (c *compiler) request(data any) (r Request) {
	o, ok := c.object(data, "", -1, "the request")
	if !ok {
		return r
	}
	prompt, _ := o.text("prompt")
	plan, hasPlan := o.value("plan")
	itself := !hasPlan && o.m["steps"] != nil
	if itself {
		plan, hasPlan = o.m, true
	}
	hasPrompt := strings.TrimSpace(prompt) != ""
	switch {
	case hasPrompt == hasPlan:
		c.addf(-1, "", RuleOneOf, "the request has to have either a plan or a prompt that is not blank%s", requestHint(o.m))
	case hasPlan:
		r.Plan, _ = c.isObject(plan, "/plan", -1, "plan")
	default:
		r.Prompt = prompt
	}
	r.Bindings, _ = o.values("bindings")
	r.Timeout = time.Duration(o.number("timeout_ms", 1)) * time.Millisecond
	r.Parallel = o.number("max_parallel", 1)
	if !itself { // unknown keys of a plan are ignored
		o.close()
	}
	return r
}

// requestHint states that the data of a request looks like a plan of calls.
func requestHint(request map[string]any) string {
	if request["plan"] == nil && request["calls"] != nil {
		return "; this looks like a plan, which is run by a tool of kind plan"
	}
	return ""
}

// PlanOf returns the plan that data for a kind of program contains: under its key plan, or else the data itself.
func PlanOf(kind Kind, data map[string]any) map[string]any {
	if plan, ok := data["plan"].(map[string]any); ok && data[ownKey(kind)] == nil {
		return plan
	}
	return data
}

// ownKey is the key by which data is recognised as the plan itself.
func ownKey(kind Kind) string {
	if kind == KindOrchestration {
		return "steps"
	}
	return "type"
}

// CompileOrchestration compiles the plan of an orchestration request, or the plan that a planner made
// of its prompt. The error is a [*Refused].
//
// The status of a step is ignored, its type follows from what it has, and a missing id is
// step_<place>.
func CompileOrchestration(plan map[string]any, r Request, o Options) (*Program, error) {
	c := newCompiler(o)
	if r.Timeout > 0 {
		c.limits.StepTimeout = min(c.limits.StepTimeout, r.Timeout)
	}
	if r.Parallel > 0 {
		c.limits.Parallel = min(c.limits.Parallel, r.Parallel)
	}
	p := c.steps(plan, r.Bindings, source{order: -1, depth: max(1, o.Depth)})
	if err := c.refused(KindOrchestration, o.Tools); err != nil {
		return nil, err
	}
	for _, call := range p.Calls() {
		call.path, call.wrong, call.direct = "", nil, nil
	}
	return p, nil
}

// steps compiles the plan of an orchestration.
func (c *compiler) steps(plan map[string]any, bindings map[string]any, s source) *Program {
	p := &Program{Kind: KindOrchestration, Steps: []Step{}, Limits: c.limits, Depth: s.depth, Bindings: map[string]any{}}
	o := object{c: c, m: plan, path: s.path, order: s.order}
	own, _ := o.values("bindings")
	switch {
	case len(own) == 0 && bindings != nil:
		p.Bindings = bindings
	case len(bindings) == 0 && own != nil:
		p.Bindings = own
	default:
		maps.Copy(p.Bindings, own)
		maps.Copy(p.Bindings, bindings)
	}
	list, ok := plan["steps"].([]any)
	switch {
	case !ok:
		c.missingOrType(plan, "steps", "an array", s)
	case len(list) == 0:
		c.addf(s.order, s.path+"/steps", "minItems", "the plan has no steps; it needs at least one")
	case len(list) > c.limits.Steps:
		c.addf(s.order, s.path+"/steps", RuleMaxItems, "the plan has %d steps; the limit is %d", len(list), c.limits.Steps)
	case c.admit(s, countCalls(list), "/steps"):
		for i, v := range list {
			p.Steps = append(p.Steps, c.step(v, i, s))
		}
		c.distinct(p, s)
		c.checkOrchestration(p, s)
	}
	return p
}

// defaultStepID is the id of a step that has none.
func defaultStepID(i int) string { return "step_" + strconv.Itoa(i+1) }

// countCalls counts the agents of steps.
func countCalls(steps []any) (n int) {
	for _, step := range steps {
		m, _ := step.(map[string]any)
		group, _ := m["parallel"].(map[string]any)
		if children, ok := group["steps"].([]any); ok {
			n += len(children)
		} else {
			n++
		}
	}
	return n
}

// step reads one step.
func (c *compiler) step(v any, i int, s source) (step Step) {
	o, ok := c.object(v, pointerIndex(s.path+"/steps", i), s.at(i), "a step")
	if !ok {
		return step
	}
	step.ID = o.id("id", defaultStepID(i), inStepID)
	o.enum("status", "pending", "running", "success", "failed", "partial", "skipped")
	kind := o.enum("type", "agent", "parallel")
	step.Continue = o.enum("on_error", "continue", "halt") == "continue"
	o.text("name")
	o.text("description")
	if transitions, _ := o.values("transitions"); len(transitions) > 0 {
		o.addf("transitions", RuleUnsupported, "transitions are not supported: steps run in the order of the list")
	}
	agent, hasAgent := o.value("agent")
	group, hasGroup := o.value("parallel")
	switch {
	case hasAgent && hasGroup:
		o.addf("", RuleConflict, "a step has either agent or parallel, not both")
	case !hasAgent && !hasGroup:
		o.addf("", "required", "a step needs agent or parallel")
	case hasAgent && kind == "parallel" || hasGroup && kind == "agent":
		o.addf("", RuleConflict, "a step of type %s has to have the key %s", kind, kind)
	case hasAgent:
		call := c.agent(agent, o.path+"/agent", o.order, step.ID)
		step.Calls, step.Key = []Call{call}, call.Key
	default:
		c.group(&step, group, o.path+"/parallel", o.order)
	}
	o.close()
	return step
}

// group reads a group of agents that run at the same time.
func (c *compiler) group(step *Step, v any, path string, order int) {
	o, ok := c.object(v, path, order, "a group")
	if !ok {
		return
	}
	step.Group = true
	step.Key = o.id("result_key", "", inKey)
	step.Merge = Merge(o.enum("merge_strategy", string(MergeCollect), string(MergeFirstSuccess)))
	if step.Merge == "" {
		step.Merge = MergeCollect
	}
	step.Parallel = c.limits.Parallel
	if most := o.number("max_concurrency", 0); most > 0 {
		step.Parallel = min(step.Parallel, most)
	}
	step.Bindings, _ = o.values("bindings")
	list, given := o.value("steps")
	children, ok := list.([]any)
	switch {
	case !given:
		o.addf("steps", "required", "a group needs steps")
	case !ok:
		o.addf("steps", "type", "steps have to be an array, got %s", typeName(list))
	case len(children) == 0:
		o.addf("steps", "minItems", "a group needs at least one step")
	}
	for i, child := range children {
		step.Calls = append(step.Calls, c.agent(child, pointerIndex(path+"/steps", i), order, step.ID+"["+strconv.Itoa(i)+"]"))
	}
	step.Parallel = min(step.Parallel, len(children))
	o.close()
}

// directArgument is a key of an agent that is an argument of its tool.
type directArgument struct{ key, argument string }

func directArguments() [2]directArgument {
	return [...]directArgument{{"prompt", "prompt"}, {"action_id", "action"}}
}

// agentTool finds the tool of an agent_id: an agent, else any tool.
func (c *compiler) agentTool(id string) (Tool, bool) {
	if tool, ok := c.tools.Find("agent:" + id); ok {
		return tool, true
	}
	return c.tools.Find(id)
}

// agent reads one agent: the call of a tool.
func (c *compiler) agent(v any, path string, order int, id string) (call Call) {
	call.ID = id
	o, ok := c.object(v, path, order, "an agent")
	if !ok {
		return call
	}
	call.Key = o.id("result_key", "", inKey)
	call.Timeout = time.Duration(o.number("timeout_ms", 0)) * time.Millisecond
	with, _ := o.values("with")
	call.Arguments = make(map[string]any, len(with)+2) // and prompt and action
	maps.Copy(call.Arguments, with)
	call.path, call.direct = path, map[string]string{}
	for _, given := range directArguments() {
		text, ok := o.text(given.key)
		if _, twice := with[given.argument]; !ok && !twice && o.m[given.key] != nil { // reported, and not missing
			call.Arguments[given.argument], call.wrong = o.m[given.key], map[string]bool{given.argument: true}
		} else if ok && twice {
			o.addf("with/"+given.argument, RuleConflict, "%s is given twice: in with and as %s", given.argument, given.key)
		} else if ok {
			call.Arguments[given.argument], call.direct[given.argument] = text, given.key
		}
	}
	name, ok := o.text("agent_id")
	switch {
	case !ok && o.m["agent_id"] != nil: // not a string, which is reported
	case name == "":
		o.addf("agent_id", "required", "an agent needs agent_id")
	default:
		tool, ok := c.agentTool(name)
		if call.Tool = tool.Name; !ok {
			o.addf("agent_id", RuleUnknown, "%q is not an agent that this orchestration may call.%s", clip(name), c.closest(name, c.tools.Names()))
		}
	}
	o.close()
	return call
}

// distinct checks that ids and keys occur once.
func (c *compiler) distinct(p *Program, s source) {
	ids, keys := map[string]bool{}, map[string]bool{}
	claim := func(seen map[string]bool, name, path, what string, i int) {
		if name != "" && seen[name] {
			c.addf(s.at(i), path, RuleDuplicate, "%s %q is used by an earlier step", what, clip(name))
		}
		seen[name] = true
	}
	for i := range p.Steps {
		step, path := &p.Steps[i], pointerIndex(s.path+"/steps", i)
		what := "id"
		if step.ID == defaultStepID(i) {
			what = "the default id"
		}
		claim(ids, step.ID, path+"/id", what, i)
		if !step.Group {
			claim(keys, step.Key, path+"/agent/result_key", "result_key", i)
			continue
		}
		for j := range step.Calls {
			claim(keys, step.Calls[j].Key, pointerIndex(path+"/parallel/steps", j)+"/result_key", "result_key", i)
		}
		claim(keys, step.Key, path+"/parallel/result_key", "result_key", i)
	}
}
