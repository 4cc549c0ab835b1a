package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/subjects"
)

// Turns whose tool is a program, a plan or an orchestration. The runner, its steps and their records are the product's. This file
// draws what the programs are; step.go has the tools of their steps.

// Tools of kind plan and orchestrate, in the agents of the same kinds.
const (
	kindPlan        = "plan"
	kindOrchestrate = "orchestrate"
	planTool        = "run_plan"
	orchestrateTool = "cp__agent_orchestrate"
)

// program is what the data of a turn asks for: steps in order, each of them one call or a group.
type program struct {
	kind  string
	steps []*step
}

// step is a step of a program.
type step struct {
	id        string
	group     bool
	race      bool // the first success of the group counts
	parallel  int  // calls of the group at the same time, 0 for no bound
	tolerated bool // a failure does not halt the program
	calls     []*call
}

// call is one call of a program.
type call struct {
	id     string // in the turn: of a nested program "outer#inner"
	token  string // of its records
	effect bindings.Effect
	from   *step   // whose value it is called with, nil for none
	script *script // what its tool asks, nil when it asks nothing
	nested *program
}

// newProgram draws a program; most turns are none.
func (w *world) newProgram() *program {
	if !w.chance(1, 4) {
		return nil
	}
	if w.chance(1, 3) {
		return w.newPlan("", 1)
	}
	p := &program{kind: kindOrchestrate}
	for i := range 1 + w.rng.IntN(3) {
		s := &step{id: "s" + strconv.Itoa(i), tolerated: w.chance(1, 3)}
		children := 1
		if s.group = w.chance(1, 2); s.group {
			s.race, s.parallel = w.chance(1, 2), w.rng.IntN(3)
			children = 2 + w.rng.IntN(2)
		}
		for j := range children {
			id := s.id
			if s.group {
				id = fmt.Sprintf("%s[%d]", s.id, j)
			}
			s.calls = append(s.calls, w.newCall(p, id, 1))
		}
		p.steps = append(p.steps, s)
	}
	return p
}

// newPlan draws a plan. The ids of its calls begin with a prefix.
func (w *world) newPlan(prefix string, depth int) *program {
	p := &program{kind: kindPlan}
	for i := range 1 + w.rng.IntN(3) {
		id := strconv.Itoa(i)
		p.steps = append(p.steps, &step{id: id, calls: []*call{w.newCall(p, prefix+id, depth)}})
	}
	return p
}

// newCall draws a call after the steps that a program has so far.
func (w *world) newCall(p *program, id string, depth int) *call {
	all := effects()
	c := &call{id: id, token: subjects.StepCall(id), effect: all[w.rng.IntN(len(all))]}
	if w.chance(1, 3) {
		c.effect = bindings.EffectUnsafe
	}
	if len(p.steps) > 0 && w.chance(2, 3) {
		c.from = p.steps[w.rng.IntN(len(p.steps))]
	}
	switch {
	case depth < 2 && w.chance(1, 8):
		c.nested, c.from = w.newPlan(id+"#", depth+1), nil
	case w.chance(1, 4):
		if c.script = w.newScript(); c.script != nil {
			c.script.fickle = false
		}
		if c.script != nil && w.chance(1, 2) {
			c.effect = bindings.EffectReplay
		}
	}
	return c
}

// all returns the calls of a program and of those that are nested in it, in order.
func (p *program) all() (calls []*call) {
	if p == nil {
		return nil
	}
	for _, s := range p.steps {
		for _, c := range s.calls {
			calls = append(calls, c)
			calls = append(calls, c.nested.all()...)
		}
	}
	return calls
}

// tool is what the call names.
func (c *call) tool() string {
	if c.nested != nil {
		return planTool
	}
	return stepTool(c.effect)
}

func stepTool(e bindings.Effect) string { return stepPrefix + string(e) }

// data is the data of a turn that has the program. V distinguishes it from other data.
func (p *program) data(v int) map[string]any {
	if p.kind == kindPlan {
		return p.planData(v)
	}
	steps := make([]any, 0, len(p.steps))
	for _, s := range p.steps {
		step := map[string]any{"id": s.id}
		if s.tolerated {
			step["on_error"] = "continue"
		}
		if !s.group {
			agent := s.calls[0].agent(v)
			agent["result_key"] = s.key()
			step["agent"] = agent
			steps = append(steps, step)
			continue
		}
		agents := make([]any, 0, len(s.calls))
		for i, c := range s.calls {
			agent := c.agent(v)
			agent["result_key"] = s.childKey(i)
			agents = append(agents, agent)
		}
		group := map[string]any{"steps": agents, "result_key": s.key()}
		if s.race {
			group["merge_strategy"] = "first_success"
		}
		if s.parallel > 0 {
			group["max_concurrency"] = json.Number(strconv.Itoa(s.parallel))
		}
		step["parallel"] = group
		steps = append(steps, step)
	}
	return map[string]any{"plan": map[string]any{"steps": steps}}
}

func (s *step) key() string { return "r_" + s.id }

func (s *step) childKey(i int) string { return fmt.Sprintf("%s_%d", s.key(), i) }

// agent is a call of an orchestration.
func (c *call) agent(v int) map[string]any {
	with := c.arguments(v)
	if c.from != nil {
		with["from"] = "{{ result." + c.from.key() + " }}"
	}
	return map[string]any{"agent_id": c.tool(), "with": with}
}

// arguments are the literal ones of a call.
func (c *call) arguments(v int) map[string]any {
	if c.nested != nil {
		return map[string]any{"plan": c.nested.planData(v)}
	}
	return map[string]any{"v": json.Number(strconv.Itoa(v))}
}

func (p *program) planData(v int) map[string]any {
	calls := make([]any, 0, len(p.steps))
	for _, s := range p.steps {
		c := s.calls[0]
		args := c.arguments(v)
		if c.from != nil {
			args["from"] = "$" + c.from.id + ".output"
		}
		calls = append(calls, map[string]any{"tool_name": c.tool(), "arguments": args})
	}
	return map[string]any{"type": "tool_calls", "calls": calls}
}

// callOf returns a call of the turn by the token of its records, nil for the turn's own.
func (t *turn) callOf(token string) *call {
	if token == subjects.SingleCall {
		return nil
	}
	for _, c := range t.calls {
		if c.token == token {
			return c
		}
	}
	return nil
}

// callNamed returns a call of the turn by its id.
func (t *turn) callNamed(id string) *call {
	i := slices.IndexFunc(t.calls, func(c *call) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return t.calls[i]
}
