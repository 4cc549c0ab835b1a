package program

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/tools"
)

// Describe returns what the tool of a binding reports of itself: a service, a server or a Go type; false if it is not
// known. It is asked only for tools that a program names.
type Describe func(b *bindings.Binding) (tools.Description, bool)

// Tools are the tools that the steps of a program may call. It implements [flow.Tools] and is safe for concurrent use.
type Tools struct {
	catalog *Catalog
	agent   string
	list    []*bindings.Binding
	byName  map[string]*bindings.Binding // as programs name them
	names   []string                     // for feedback
	agents  bool                         // names may be ids of agents

	mu    sync.Mutex
	found map[*bindings.Binding]flow.Tool
}

// NewTools is [Catalog.Tools] of a new catalog. Describe may be nil.
func NewTools(set *bindings.Set, b *bindings.Binding, agent string, describe Describe) *Tools {
	return NewCatalog(set, describe).Tools(b, agent)
}

// Tools returns the tools of the steps of b, a binding of a tool that runs programs, in a turn of agent.
func (c *Catalog) Tools(b *bindings.Binding, agent string) *Tools {
	t := &Tools{
		catalog: c, agent: agent, list: c.set.StepTools(b, agent), byName: make(map[string]*bindings.Binding), found: make(map[*bindings.Binding]flow.Tool),
		agents: b.Kind == bindings.KindOrchestrate,
	}
	for _, step := range t.list {
		name := step.Tool
		t.byName[name] = step
		if id := step.AgentID(); id != "" {
			if t.byName["agent:"+id] == nil {
				t.byName["agent:"+id] = step
			}
			if b.Kind == bindings.KindOrchestrate {
				name = id
			}
		}
		if b.Kind == bindings.KindOrchestrate {
			name = strings.TrimPrefix(name, "agent:")
		}
		t.names = append(t.names, name)
	}
	slices.Sort(t.names)
	t.names = slices.Compact(t.names)
	return t
}

// Binding returns the binding of a tool by the name that a program uses, nil if steps may not call it.
func (t *Tools) Binding(name string) *bindings.Binding { return t.byName[events.Name(name)] }

// Bindings returns all of them, in the order of the manifest.
func (t *Tools) Bindings() []*bindings.Binding { return slices.Clone(t.list) }

// Names implements [flow.Tools].
func (t *Tools) Names() []string { return slices.Clone(t.names) }

// Find implements [flow.Tools].
func (t *Tools) Find(name string) (flow.Tool, bool) {
	b := t.Binding(name)
	if b == nil {
		return flow.Tool{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tool, known := t.found[b]
	if !known {
		tool = t.catalog.tool(b)
		if b.Program != nil {
			tool.Steps = t.catalog.Tools(b, t.agent)
		}
		t.found[b] = tool
	}
	return tool, true
}

// compileTool compiles what a tool is described by, except for its effect. Arguments are described by the manifest, else by the tool
// itself, else by the model of its binding; results by the manifest, else by the tool itself.
func compileTool(b *bindings.Binding, d tools.Description) flow.Tool {
	tool := flow.Tool{Name: b.Tool, Program: kindOf(b), Input: b.Input}
	if tool.Input == nil && d.Input != nil {
		if m, err := model.CompileSchema(b.Tool, d.Input); err == nil {
			tool.Input = m // else only the tool can check its arguments
		}
	}
	if d.Input == nil && b.Model != nil && b.Program == nil {
		tool.Input, d.Input = b.Model, b.Model.JSONSchema()
	}
	tool.Arguments, tool.Output = schema(d.Input), schema(d.Output)
	return tool
}

// described returns schemas, effect and text of a tool by its manifest, else as it reports them itself.
func described(b *bindings.Binding, describe Describe) tools.Description {
	known := tools.Description{Text: b.Description, Input: b.InputSchema, Output: b.OutputSchema, Effect: string(b.Effect)}
	if describe == nil || b.Program != nil || known.Input != nil && known.Output != nil && !b.DiscoversEffect() {
		return known
	}
	if d, ok := describe(b); ok {
		known.Text = cmp.Or(known.Text, d.Text)
		if known.Input == nil {
			known.Input = d.Input
		}
		if known.Output == nil {
			known.Output = d.Output
		}
		if d.Effect != "" && !b.EffectDeclared {
			known.Effect = d.Effect
		}
	}
	return known
}

// schema reads a JSON Schema. One that cannot be read declares nothing.
func schema(text json.RawMessage) *flow.Schema {
	if text == nil {
		return nil
	}
	s, err := flow.NewSchema(text)
	if err != nil {
		return nil
	}
	return s
}

// kindOf returns the kind of program that a tool runs, "" if it runs none.
func kindOf(b *bindings.Binding) flow.Kind {
	switch b.Kind {
	case bindings.KindPlan:
		return flow.KindPlan
	case bindings.KindOrchestrate:
		return flow.KindOrchestration
	default:
		return ""
	}
}
