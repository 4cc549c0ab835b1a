package bindings

import (
	"cmp"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A tool of kind plan or orchestrate runs a program: a list of steps, each the call of another tool of the workflow.
// Its entry names these tools and bounds the program; program_check.go checks the names against the whole workflow,
// and program_tools.go finds the tools of steps.

// Kinds of tools that run programs.
const (
	KindPlan        Kind = "plan"        // its data is a plan: calls that refer to the outputs of earlier calls
	KindOrchestrate Kind = "orchestrate" // its data is a request: steps of agents, alone or in groups
)

// EffectProgram is the effect of a tool that runs a program: each step has the effect of its tool. A manifest
// cannot declare it.
const EffectProgram = events.EffectProgram

// Program is how a tool of kind plan or orchestrate runs the programs that it gets. It is immutable.
type Program struct {
	Kind    Kind     // KindPlan or KindOrchestrate
	Uses    []string // the tools that steps may call, by the names that programs use; nil if the manifest lists none
	Planner string   // the agent that writes the program for a prompt; "" if there is none
	Respond string   // the agent that writes the answer from the results; "" if there is none
	Approve bool     // a person is asked before the first step
	Enabled bool     // false: programs are refused
	Limits  ProgramLimits
}

// ProgramLimits bound each program that a tool runs. All are positive.
type ProgramLimits struct {
	Calls       int           // in all, with the calls of nested programs; default 50
	Steps       int           // of an orchestration, at its top level; default 12
	Parallel    int           // calls of a group at the same time; default 4
	Depth       int           // of nested programs; default 3
	StepTimeout time.Duration // of a step whose tool has no timeout; default 1 minute
	Timeout     time.Duration // of the whole run, without the time in which it waits for people; default 5 minutes
}

// Defaults and bounds of the limits of programs.
const (
	defaultProgramCalls    = 50
	defaultProgramSteps    = 12
	defaultProgramParallel = 4
	defaultProgramDepth    = 3
	defaultStepTimeout     = time.Minute
	defaultProgramTimeout  = 5 * time.Minute

	maxProgramCalls    = 1000
	maxProgramParallel = 100
	maxProgramDepth    = 10
)

// programKind reports whether tools of this kind run programs.
func programKind(k Kind) bool { return k == KindPlan || k == KindOrchestrate }

// exampleProgram is shown where the key program has another shape.
const exampleProgram = "program: {calls: 20, step_timeout: 30s}"

// programKeys are the keys that only tools that run programs have.
func programKeys() []string {
	return []string{"uses", "planner", "respond", "approve", "enabled", "program"}
}

// withoutProgram refuses the keys of programs on a tool of another kind, which would have no effect.
func (o *entryReader) withoutProgram(n *node, t *toolEntry) {
	for _, key := range programKeys() {
		if v := n.get(key); !v.absent() {
			o.refusef(v.at(o.file), "key_not_allowed", "remove it, or write kind: plan or kind: orchestrate", "%s is not a key of tools of kind %s", key, t.kind)
		}
	}
}

// program reads the settings of a tool that runs programs.
func (o *entryReader) program(n *node, t *toolEntry) {
	for _, no := range []struct{ key, fix string }{
		{"effect", "remove it: each step has the effect of its tool"},
		{"cache", "remove it, and set cache of the tools that steps call"},
		{"max_attempts", "remove it, and set max_attempts of the tools that steps call"},
		{"timeout", "write program: {timeout: 5m}"},
		{"ui", "remove it; approve: true asks a person before the first step"},
		{"use", "declare the tool here, without use"},
		{"id", "remove it: the tool is called by its name"},
		{"file", "remove it, or remove kind"},
		{"function", "remove it; name is the name of the tool"},
		{"nats", "remove it, or remove kind"},
		{"mcp", "remove it, or remove kind"},
		{"http", "remove it, or remove kind"},
		{"completion", "remove it, or remove kind"},
	} {
		if v := n.get(no.key); !v.absent() {
			o.refusef(v.at(o.file), "key_not_allowed", no.fix, "%s is not a key of tools of kind %s", no.key, t.kind)
		}
	}
	p := &Program{
		Kind: t.kind, Uses: o.names(n, "uses", "[search, save]"), Planner: o.text(n, "planner"), Respond: o.text(n, "respond"),
		Approve: o.flag(n, "approve"), Enabled: n.get("enabled").absent() || o.flag(n, "enabled"),
	}
	limits := n.get("program")
	if !limits.absent() {
		limits = o.object(limits, "program", exampleProgram)
	}
	p.Limits = ProgramLimits{
		Calls:       cmp.Or(o.count(limits, "calls", maxProgramCalls), defaultProgramCalls),
		Steps:       cmp.Or(o.count(limits, "steps", maxProgramCalls), defaultProgramSteps),
		Parallel:    cmp.Or(o.count(limits, "parallel", maxProgramParallel), defaultProgramParallel),
		Depth:       cmp.Or(o.count(limits, "depth", maxProgramDepth), defaultProgramDepth),
		StepTimeout: cmp.Or(o.period(limits, "step_timeout"), defaultStepTimeout),
		Timeout:     cmp.Or(o.period(limits, "timeout"), defaultProgramTimeout),
	}
	t.program, t.programNode = p, n
	t.target, t.shared, t.policy = nil, "", policy{timeout: p.Limits.Timeout, attempts: 1}
}

// names reads a list of names. An empty list is one: the tool then calls nothing.
func (o *entryReader) names(n *node, key, example string) []string {
	if v := n.get(key); v.is(listNode) && len(v.items) == 0 {
		return []string{}
	}
	return o.list(n, key, example)
}

// period reads an optional duration.
func (o *entryReader) period(n *node, key string) time.Duration {
	v := n.get(key)
	if v.absent() {
		return 0
	}
	d, err := duration(v.text)
	if err != nil {
		o.refusef(v.at(o.file), "bad_timeout", "write for example "+key+": 30s, or a number of seconds", "%s: %v", key, err)
	}
	return d
}

// AgentID returns the id by which orchestrations find the tool, "" if it is not an agent.
func (b *Binding) AgentID() string {
	if agent, ok := b.Target.(*target.Agent); ok {
		return agent.ID
	}
	return ""
}
