package handlers

import (
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools"
)

// findTool finds what runs the tool of a turn, and what that reports about itself. The tool is not called: what it
// has not learned yet does not count for this turn. An effect that only the tool can report is unknown then, and the
// effect of the binding is the default for a new turn.
func (h *Handlers) findTool(t *turn) (err error) {
	t.Effect = t.Binding.Effect
	if t.Tool, err = h.Tool(t.Binding); err != nil {
		return err
	}
	describer, ok := t.Tool.(tools.Describer)
	if !ok {
		return nil
	}
	known, ok := describer.Known()
	t.effectUnknown = !ok && t.Binding.DiscoversEffect()
	if ok {
		t.Version = known.Version
		if known.Effect != "" && !t.Binding.EffectDeclared {
			t.Effect = bindings.Effect(known.Effect)
		}
	}
	return nil
}
