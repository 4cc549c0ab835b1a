package flow

import "slices"

// State is what is stored of the calls of a program, by call id. What a program does next follows
// from it alone, so every worker that continues the program decides the same.
type State map[string]CallState

// CallState is what is stored of one call.
type CallState struct {
	Called  bool // its tool may have been entered
	Ended   bool // its response is stored
	Success bool
	Code    string // of the response, "" for a success
	Seq     uint64 // order of the response among all records
	Waiting bool   // it waits for people and leaves its place in the group to another call
}

// EndedCall returns what is stored of a call whose response is, with the code and the sequence of the response.
func EndedCall(success bool, code string, seq uint64) CallState {
	return CallState{Called: true, Ended: true, Success: success, Code: code, Seq: seq}
}

// Next is what a program does next.
type Next struct {
	Start []*Call // to be called now
	Stop  []*Call // calls of a race that is over: they are stopped, and end as cancelled
	// Wait means that a call that was started has not ended. Without Start and Wait the program is over.
	Wait bool
	Halt *Call // the call that halted the program, nil if none did
}

// Next decides what to do next. Steps run in the order of the list; a step begins when the one before
// it is over.
func (p *Program) Next(s State) Next {
	for i := range p.Steps {
		step := &p.Steps[i]
		n, over := step.next(s)
		if !over {
			return n
		}
		if failed := step.failed(s); failed != nil && !step.Continue {
			return Next{Halt: failed}
		}
	}
	return Next{}
}

// next is Next for one step; over reports whether the step is over.
func (s *Step) next(state State) (n Next, over bool) {
	winner := s.winner(state)
	free := s.Parallel
	if !s.Group {
		free = 1
	}
	for i := range s.Calls {
		switch c := state[s.Calls[i].ID]; {
		case c.Ended, c.Waiting:
		case c.Called:
			free--
		}
	}
	for i := range s.Calls {
		call := &s.Calls[i]
		switch c := state[call.ID]; {
		case c.Ended:
		case c.Called && winner != nil:
			n.Stop = append(n.Stop, call)
			n.Wait = true
		case c.Called:
			n.Wait = true
		case winner == nil && free > 0:
			n.Start = append(n.Start, call)
			free--
		case winner == nil:
			n.Wait = true // until a place is free
		}
	}
	return n, len(n.Start) == 0 && !n.Wait
}

// winner returns the call that has won a race: of all successes the one that was stored first.
func (s *Step) winner(state State) *Call {
	if !s.Group || s.Merge != MergeFirstSuccess {
		return nil
	}
	var winner *Call
	for i := range s.Calls {
		c := state[s.Calls[i].ID]
		if c.Ended && c.Success && (winner == nil || c.Seq < state[winner.ID].Seq) {
			winner = &s.Calls[i]
		}
	}
	return winner
}

// failed returns the call for which a step that is over has failed, the first in the order of the
// list; nil if it has not. A race with a winner has not.
func (s *Step) failed(state State) *Call {
	if s.winner(state) != nil {
		return nil
	}
	i := slices.IndexFunc(s.Calls, func(c Call) bool { return !state[c.ID].Success })
	if i < 0 {
		return nil
	}
	return &s.Calls[i]
}

// counts reports whether the output of a call can be referred to: it has succeeded, and if it ran in a
// race it has won that.
func (s *Step) counts(call *Call, state State) bool {
	if winner := s.winner(state); winner != nil {
		return winner.ID == call.ID
	}
	c := state[call.ID]
	return c.Ended && c.Success
}

// Visible reports whether the output of a call can be referred to: the call has succeeded, and if it
// ran in a race, it has won.
func (p *Program) Visible(call string, state State) bool {
	for i := range p.Steps {
		for j := range p.Steps[i].Calls {
			if c := &p.Steps[i].Calls[j]; c.ID == call {
				return p.Steps[i].counts(c, state)
			}
		}
	}
	return false
}

// StepOf returns the step that a call belongs to, nil if there is none.
func (p *Program) StepOf(call string) *Step {
	for i := range p.Steps {
		if slices.ContainsFunc(p.Steps[i].Calls, func(c Call) bool { return c.ID == call }) {
			return &p.Steps[i]
		}
	}
	return nil
}

// RaceOf returns the calls of the group in which the first success counts and that a call belongs to, nil for any other call.
func (p *Program) RaceOf(call string) []*Call {
	step := p.StepOf(call)
	if step == nil || !step.Group || step.Merge != MergeFirstSuccess {
		return nil
	}
	race := make([]*Call, len(step.Calls))
	for j := range step.Calls {
		race[j] = &step.Calls[j]
	}
	return race
}
