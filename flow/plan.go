package flow

import "strconv"

// CompilePlan compiles a plan: `{"type": "tool_calls", "reasoning": …, "calls": [{"tool_name": …,
// "arguments": {…}}]}`, or `{"type": "direct_response", "content": …}`, which has no steps. The data
// is a value tree of package events. The error is a [*Refused].
//
// Unknown keys are ignored; `reasoning` and `arguments` may be absent.
func CompilePlan(data any, o Options) (*Program, error) {
	c := newCompiler(o)
	p := c.plan(data, source{order: -1, depth: max(1, o.Depth)})
	if err := c.refused(KindPlan, o.Tools); err != nil {
		return nil, err
	}
	return p, nil
}

// plan compiles a plan that may be nested. The result counts only if there are no problems.
func (c *compiler) plan(data any, s source) *Program {
	p := &Program{Kind: KindPlan, Steps: []Step{}, Limits: c.limits, Depth: s.depth}
	m, ok := data.(map[string]any)
	if !ok {
		c.addf(s.order, s.path, "type", "the plan has to be an object, got %s", typeName(data))
		return p
	}
	if p.Reasoning, ok = optionalText(m, "reasoning"); !ok {
		c.addf(s.order, s.path+"/reasoning", "type", "reasoning has to be a string, got %s", typeName(m["reasoning"]))
	}
	switch kind, given := m["type"]; kind {
	case "direct_response":
		answer, ok := m["content"].(string)
		if !ok {
			c.missingOrType(m, "content", "a string", s)
		}
		p.Answer = &answer
	case "tool_calls":
		calls, ok := m["calls"].([]any)
		if !ok {
			c.missingOrType(m, "calls", "an array", s)
		} else if c.admit(s, len(calls), "/calls") {
			p.Steps = c.planCalls(calls, s)
		}
	default:
		rule := "enum"
		if !given {
			rule = "required"
		}
		c.addf(s.order, s.path+"/type", rule, `type has to be "tool_calls" or "direct_response"%s`, typeHint(m))
	}
	return p
}

// typeHint names what was probably meant as the type of a plan, or that the data looks like an orchestration.
func typeHint(plan map[string]any) string {
	if text, ok := plan["type"].(string); ok && text != "" {
		return "; it is " + strconv.Quote(clip(text))
	}
	if alias := aliasOf(plan, "type"); alias != "" {
		return "; did you mean type in place of " + strconv.Quote(clip(alias)) + "?"
	}
	if plan["steps"] != nil {
		return "; this looks like an orchestration, which is run by a tool of kind orchestrate"
	}
	return ""
}

// missingOrType adds the problem of a required key that is absent or of another type.
func (c *compiler) missingOrType(m map[string]any, key, want string, s source) {
	if v, given := m[key]; given {
		c.addf(s.order, pointer(s.path, key), "type", "%s has to be %s, got %s", key, want, typeName(v))
		return
	}
	if alias := aliasOf(m, key); alias != "" {
		c.addf(s.order, pointer(s.path, key), "required", "%s is missing; did you mean %s in place of %q?", key, key, clip(alias))
		return
	}
	c.addf(s.order, pointer(s.path, key), "required", "%s is missing; it has to be %s", key, want)
}

func optionalText(m map[string]any, key string) (text string, ok bool) {
	v, given := m[key]
	if !given || v == nil {
		return "", true
	}
	text, ok = v.(string)
	return text, ok
}

// planCalls compiles the calls of a plan.
func (c *compiler) planCalls(list []any, s source) []Step {
	calls := make([]planCall, len(list))
	for i := range list {
		calls[i] = c.planCall(list[i], i, s)
	}
	steps := make([]Step, len(list))
	for i := range calls {
		needs := c.checkPlanCall(calls, i, s)
		id := strconv.Itoa(i)
		steps[i] = Step{ID: id, Calls: []Call{{ID: id, Tool: calls[i].name, Arguments: calls[i].arguments, Needs: needs}}}
	}
	return steps
}

// planCall is a call of a plan as far as its shape is right.
type planCall struct {
	name      string
	arguments map[string]any
	tool      Tool
	known     bool // tool is set
	path      string
	alias     string // a key that was probably meant as arguments, which are absent
}

func (c *compiler) planCall(v any, i int, s source) planCall {
	call := planCall{path: pointerIndex(s.path+"/calls", i), arguments: map[string]any{}}
	m, ok := v.(map[string]any)
	if !ok {
		c.addf(s.at(i), call.path, "type", "call %d has to be an object, got %s", i, typeName(v))
		return call
	}
	at := source{path: call.path, order: s.at(i)}
	if call.name, ok = m["tool_name"].(string); !ok {
		c.missingOrType(m, "tool_name", "a string", at)
	} else if call.name == "" {
		c.addf(at.order, call.path+"/tool_name", "required", "tool_name of call %d is empty", i)
	} else if call.tool, call.known = c.tools.Find(call.name); !call.known {
		c.append(Problem{
			Use: &Use{ToolIndex: i}, Error: &UseError{Type: RuleUnknownTool, ToolName: clip(call.name)},
			Path: call.path + "/tool_name", Rule: RuleUnknownTool, order: at.order,
			Message: "call " + strconv.Itoa(i) + ": " + strconv.Quote(clip(call.name)) + " is not a tool that this plan may call." + c.closest(call.name, c.tools.Names()),
		})
	}
	call.alias = aliasOf(m, "arguments")
	if arguments, given := m["arguments"]; given {
		if call.arguments, ok = arguments.(map[string]any); !ok {
			c.addf(at.order, call.path+"/arguments", "type", "arguments of call %d have to be an object, got %s", i, typeName(arguments))
			call.arguments, call.known = map[string]any{}, false
		}
	}
	return call
}

// checkPlanCall checks the arguments of call i and returns the calls that it needs.
func (c *compiler) checkPlanCall(calls []planCall, i int, s source) (needs []string) {
	call := &calls[i]
	u := planUses{c: c, calls: calls, i: i, s: s, needed: map[int]bool{}}
	of := Call{ID: strconv.Itoa(i), Arguments: call.arguments}
	uses := c.collect(s, &of, call.tool.Program, "/calls", planReferences)
	for _, use := range uses {
		if !c.full() {
			u.check(use.text, use.path)
		}
	}
	if call.known {
		u.literals(dynamic(uses))
		if call.tool.Program != "" {
			c.nested(&call.tool, call.arguments, source{path: call.path + "/arguments/plan", order: s.at(i), depth: s.depth + 1})
		}
	}
	needs = []string{}
	for n := range calls {
		if u.needed[n] {
			needs = append(needs, strconv.Itoa(n))
		}
	}
	return needs
}
