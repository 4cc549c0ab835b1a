package bindings

import "github.com/oneturn/oneturn/handoff"

// Handoffs returns the handoff rules of a workflow, nil if it has none.
func (s *Set) Handoffs(workflow string) *handoff.Rules {
	if w := s.find(workflow); w != nil {
		return w.handoffs
	}
	return nil
}

// Decider returns the agent that answers conditions for a model, nil if there is none.
func (s *Set) Decider(workflow string) *Binding {
	if w := s.find(workflow); w != nil && w.handoffs.Decider() != "" {
		b, err := s.Tool(workflow, w.handoffs.Decider())
		if err == nil {
			return b
		}
	}
	return nil
}
