package flow

import "reflect"

// Kept returns which calls of a program that is over keep their ends when the program is retried, in program order: those
// that have ended in steps which the program has passed, whether they succeeded or their failure was tolerated, and those
// that succeeded in the step at which it ended. All others run, also the ones that failed in that step.
func (p *Program) Kept(s State) []*Call {
	var kept []*Call
	for i := range p.Steps {
		step := &p.Steps[i]
		_, over := step.next(s)
		passed := over && (step.Continue || step.failed(s) == nil)
		for j := range step.Calls {
			if c := s[step.Calls[j].ID]; c.Ended && (passed || c.Success) {
				kept = append(kept, &step.Calls[j])
			}
		}
		if !passed {
			break
		}
	}
	return kept
}

// SameSteps reports whether two programs run the same calls in the same order. Limits and timeouts may differ.
func (p *Program) SameSteps(o *Program) bool { return reflect.DeepEqual(p.unlimited(), o.unlimited()) }

// unlimited returns the kind and the steps of a program without its limits, with nil for what is empty.
func (p *Program) unlimited() []any {
	all := []any{p.Kind, orNil(p.Bindings)}
	for i := range p.Steps {
		s := &p.Steps[i]
		all = append(all, s.ID, s.Group, s.Key, s.Merge, orNil(s.Bindings), s.Continue, len(s.Calls))
		for j := range s.Calls {
			c := &s.Calls[j]
			all = append(all, c.ID, c.Tool, orNil(c.Arguments), c.Key, append([]string{}, c.Needs...))
		}
	}
	return all
}

func orNil(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	return m
}
