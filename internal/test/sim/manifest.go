package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
		steps, builds          string    // what the names of the tools of steps, and of builders, begin with
		effect                 func(bindings.Effect) bindings.Effect
		corrects               int // how often the outputs of agents are corrected
	}{
		{"usual", workflow, lax, usual, stepPrefix, buildPrefix, same, 2},
		{"strict", workflow, strict, usual, stepPrefix, buildPrefix, same, 1},
		{"without the workflow", "other", lax, usual, stepPrefix, buildPrefix, same, 2},
		{"with other effects", workflow, lax, usual, stepPrefix, buildPrefix, func(e bindings.Effect) bindings.Effect {
			if e == bindings.EffectUnsafe {
				return bindings.EffectIdempotent
			}
			return bindings.EffectUnsafe
		}, mostCorrections},
		{"with tools exchanged", workflow, lax, [2]string{"second_", "first_"}, stepPrefix, buildPrefix, same, 2},
		{"with other tools", workflow, lax, [2]string{"third_", "second_"}, "other_step_", "other_build_", same, 0},
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
		talks := talks{corrects: k.corrects, schema: k.schema, prefix: k.builds, effect: k.effect, reversed: k.builds != buildPrefix || k.effect(bindings.EffectNone) != bindings.EffectNone, silent: k.schema == strict}
		set, err := loadWith(programs{workflow: k.workflow, schema: k.schema, prefix: k.steps, effect: k.effect, talks: talks}, declared)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", k.name, err)
		}
		all = append(all, manifest{k.name, set})
	}
	return all, nil
}

// programs are the tools of a manifest that run programs, and the tools of their steps.
type programs struct {
	workflow, schema, prefix string
	effect                   func(bindings.Effect) bindings.Effect
	talks                    talks
}

const (
	stepPrefix  = "step_"
	buildPrefix = "build_"
)

// loadWith loads a manifest that has declared bindings, and programs.
func loadWith(p programs, declared []bindings.Declaration) (*bindings.Set, error) {
	root, err := os.MkdirTemp("", "sim")
	if err != nil {
		return nil, fmt.Errorf("folder of manifests: %w", err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	dir := filepath.Join(root, p.workflow)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "oneturn.yaml"), p.yaml(), 0o600)); err != nil {
		return nil, fmt.Errorf("folder of manifests: %w", err)
	}
	return bindings.Load(context.Background(), bindings.Options{Root: root, Declared: declared})
}

func (p programs) yaml() []byte {
	names := append(make([]string, 0, 1+len(effects())), planTool)
	for _, e := range effects() {
		names = append(names, p.prefix+string(e))
	}
	uses := strings.Join(names, ", ")
	text := fmt.Appendf(nil, "agents: {%s: , %s: , %s}\ntools:\n", kindPlan, kindOrchestrate, p.talks.agents())
	text = fmt.Appendf(text, "- {name: %s, kind: plan, agent: %s, uses: [%s]}\n", planTool, kindPlan, uses)
	text = fmt.Appendf(text, "- {name: %s, kind: orchestrate, agent: %s, uses: [%s]}\n", orchestrateTool, kindOrchestrate, uses)
	for _, e := range effects() {
		text = fmt.Appendf(text, "- {name: %s%s, kind: go, auto: false, effect: %s, input: %s, output: {type: object}}\n", p.prefix, e, p.effect(e), p.schema)
	}
	return p.talks.rest(p.talks.tools(text))
}
