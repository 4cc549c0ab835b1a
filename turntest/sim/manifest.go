package sim

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/bindings"
)

// workflow is the one that all simulated turns belong to. It has an agent for each effect.
const workflow = "flow"

func effects() []bindings.Effect {
	return []bindings.Effect{
		bindings.EffectUnsafe, bindings.EffectReplay, bindings.EffectKeyed, bindings.EffectIdempotent, bindings.EffectNone,
	}
}

// manifest is what a worker knows of the workflow. Workers differ while a deployment rolls.
type manifest struct {
	name string
	set  *bindings.Set
}

// loadManifests compiles the manifests that workers may have. The first is the usual one.
func loadManifests() ([]manifest, error) {
	const lax = `{"type":"object","properties":{"v":{"type":"integer"}},"required":["v"]}`
	const strict = `{"type":"object","properties":{"v":{"type":"string","enum":["never"]}},"required":["v"]}`
	same := func(e bindings.Effect) bindings.Effect { return e }
	kinds := []struct {
		name, workflow, schema string
		effect                 func(bindings.Effect) bindings.Effect
	}{
		{"usual", workflow, lax, same},
		{"strict", workflow, strict, same},
		{"without the workflow", "other", lax, same},
		{"with other effects", workflow, lax, func(e bindings.Effect) bindings.Effect {
			if e == bindings.EffectUnsafe {
				return bindings.EffectIdempotent
			}
			return bindings.EffectUnsafe
		}},
	}
	var all []manifest
	for _, k := range kinds {
		declared := make([]bindings.Declaration, 0, len(effects()))
		for _, e := range effects() {
			declared = append(declared, bindings.Declaration{
				Workflow: k.workflow, Agent: string(e), Tool: "tool_" + string(e), Model: "Model",
				Schema: json.RawMessage(k.schema), Effect: k.effect(e),
			})
		}
		set, err := bindings.Load(context.Background(), bindings.Options{Declared: declared})
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", k.name, err)
		}
		all = append(all, manifest{k.name, set})
	}
	return all, nil
}
