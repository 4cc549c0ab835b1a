package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// Kind is a kind of program.
type Kind string

// The kinds of programs.
const (
	KindPlan          Kind = "plan"          // calls, one after the other
	KindOrchestration Kind = "orchestration" // steps, each one agent or a group of agents
)

// Program is a compiled program. It is frozen: it is stored as JSON before its first step, and
// the worker that continues it reads it from there.
type Program struct {
	Kind      Kind           `json:"kind"`
	Reasoning string         `json:"reasoning,omitempty"` // of the model that wrote a plan
	Answer    *string        `json:"answer,omitempty"`    // of a plan that answers directly: it has no steps
	Bindings  map[string]any `json:"bindings,omitempty"`  // values that references of an orchestration can read
	Steps     []Step         `json:"steps"`
	Limits    Limits         `json:"limits"`
	Depth     int            `json:"depth"` // 1 for the program of a turn, one more for each program around it
}

// Step is a step of a program: a call, or a group of calls that run at the same time.
type Step struct {
	ID       string         `json:"id"`
	Group    bool           `json:"group,omitempty"`
	Calls    []Call         `json:"calls"` // one, unless it is a group
	Key      string         `json:"key,omitempty"`
	Merge    Merge          `json:"merge,omitempty"`
	Parallel int            `json:"parallel,omitempty"` // calls of the group that run at the same time
	Bindings map[string]any `json:"bindings,omitempty"` // of the group: they hide bindings of the program
	Continue bool           `json:"continue,omitempty"` // a failure does not halt the program
}

// Call is one call of a tool.
type Call struct {
	ID        string         `json:"id"` // unique in the program: "0", "s1", "fan[0]"
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"` // as written, with their references
	Needs     []string       `json:"needs"`     // ids of the calls whose outputs it refers to, in program order
	Key       string         `json:"key,omitempty"`
	Timeout   time.Duration  `json:"timeout,omitempty"` // 0: the tool's

	path   string            // JSON pointer of the agent, while the program is compiled
	wrong  map[string]bool   // arguments that are reported already
	direct map[string]string // arguments that are given next to `with`, and the keys that give them
}

// Merge is how a group ends and what its value is.
type Merge string

// The ways to merge a group.
const (
	MergeCollect      Merge = "collect"       // waits for all calls; the value has the output of each that succeeded
	MergeFirstSuccess Merge = "first_success" // ends with the first success; its output is the value
)

// Limits bound a program. A field that is 0 has its default.
type Limits struct {
	Calls       int           `json:"calls"`        // in all, including nested programs; default 50
	Steps       int           `json:"steps"`        // of an orchestration, at its top level; default 12
	Parallel    int           `json:"parallel"`     // calls of a group at the same time; default 4
	Depth       int           `json:"depth"`        // of nested programs; default 3
	StepTimeout time.Duration `json:"step_timeout"` // of a step whose tool and program set none; default 1 minute
	Timeout     time.Duration `json:"timeout"`      // of the run, without the time that it waits for people; default 5 minutes
}

// WithDefaults returns the limits with defaults for what is 0.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Calls: cmp.Or(l.Calls, 50), Steps: cmp.Or(l.Steps, 12), Parallel: cmp.Or(l.Parallel, 4),
		Depth: cmp.Or(l.Depth, 3), StepTimeout: cmp.Or(l.StepTimeout, time.Minute), Timeout: cmp.Or(l.Timeout, 5*time.Minute),
	}
}

// Options of a compilation.
type Options struct {
	Tools  Tools
	Limits Limits
	Depth  int // of the program to compile; 0 is 1, the program of a turn
	// Planned means that a planner wrote the program: a program that it contains may not be planned
	// as well.
	Planned bool
}

// Calls returns all calls in program order.
func (p *Program) Calls() []*Call {
	var all []*Call
	for i := range p.Steps {
		for j := range p.Steps[i].Calls {
			all = append(all, &p.Steps[i].Calls[j])
		}
	}
	return all
}

// DecodeProgram reads a program that was stored as JSON. Numbers keep their digits.
func DecodeProgram(data []byte) (*Program, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var p Program
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("read program: %w", err)
	}
	return &p, nil
}
