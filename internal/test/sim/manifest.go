package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

// The manifests of the simulated workers. Workers differ while a deployment rolls, so a takeover may meet other tools
// and other effects.

// workflow is the one that all simulated turns belong to. It has an agent for each effect.
const workflow = "flow"

func effects() []bindings.Effect {
	return []bindings.Effect{
		bindings.EffectUnsafe, bindings.EffectReplay, bindings.EffectKeyed, bindings.EffectIdempotent, bindings.EffectNone,
	}
}

// models are the models of the data of each agent, which has a tool for each of them.
func models() []string { return []string{"Model", "Other"} }

// manifest is what a worker knows of the workflow. Workers differ while a deployment rolls.
type manifest struct {
	name string
	set  *bindings.Set
}

// tool returns what the manifest binds to a tool of the workflow, nil if it does not know it.
func (m manifest) tool(name string) *bindings.Binding {
	for _, b := range m.set.Bindings() {
		if b.Workflow == workflow && b.Tool == name {
			return b
		}
	}
	return nil
}

// endsAs reports whether a worker may have ended a turn that another had claimed, with a code,
// because of what its manifests have for the tool that the claim names.
func (w *world) endsAs(code events.Code, h *history) bool {
	strictness := []bindings.Effect{
		bindings.EffectNone, bindings.EffectIdempotent, bindings.EffectKeyed, bindings.EffectReplay, bindings.EffectUnsafe,
	}
	claimed := slices.Index(strictness, bindings.Effect(h.claim.Meta.Effect))
	for _, p := range w.processes {
		for _, m := range p.had {
			b := m.tool(toolOf(h.claim))
			switch {
			case p.name != h.responses[0].Meta.Owner || m.set.WorkflowDigest(workflow) == "":
			case b == nil && code == events.CodeUnknownTool:
				return true
			case b != nil && code == events.CodeInterrupted && slices.Index(strictness, b.Effect) > claimed:
				return true
			}
		}
	}
	return false
}

// loadManifests compiles the manifests that workers may have. The first is the usual one.
func loadManifests() ([]manifest, error) {
	const lax = `{"type":"object","properties":{"v":{"type":"integer"}},"required":["v"]}`
	const strict = `{"type":"object","properties":{"v":{"type":"string","enum":["never"]}},"required":["v"]}`
	usual := [2]string{"first_", "second_"}
	same := func(e bindings.Effect) bindings.Effect { return e }
	kinds := []struct {
		name, workflow, schema string
		tools                  [2]string // what the names of the tools begin with, by model
		effect                 func(bindings.Effect) bindings.Effect
	}{
		{"usual", workflow, lax, usual, same},
		{"strict", workflow, strict, usual, same},
		{"without the workflow", "other", lax, usual, same},
		{"with other effects", workflow, lax, usual, func(e bindings.Effect) bindings.Effect {
			if e == bindings.EffectUnsafe {
				return bindings.EffectIdempotent
			}
			return bindings.EffectUnsafe
		}},
		{"with tools exchanged", workflow, lax, [2]string{"second_", "first_"}, same},
		{"with other tools", workflow, lax, [2]string{"third_", "second_"}, same},
	}
	var all []manifest
	for _, k := range kinds {
		declared := make([]bindings.Declaration, 0, len(effects()))
		for i, e := range effects() {
			for j, model := range models() {
				declared = append(declared, bindings.Declaration{
					Workflow: k.workflow, Agent: string(e), Tool: k.tools[j] + string(e), Model: model,
					Schema: json.RawMessage(k.schema), Effect: k.effect(effects()[(i+j)%len(effects())]),
				})
			}
		}
		set, err := bindings.Load(context.Background(), bindings.Options{Declared: declared})
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", k.name, err)
		}
		all = append(all, manifest{k.name, set})
	}
	return all, nil
}
