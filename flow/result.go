package flow

import (
	"maps"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
)

// Status is the state of a program that is over, and of its steps.
type Status string

// The statuses.
const (
	StatusSuccess   Status = "success"
	StatusPartial   Status = "partial" // ran to its end, with failures that did not halt it; of a group: some calls failed
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled" // of a program only
	StatusInvalid   Status = "invalid"   // of a program that was not run
	StatusSkipped   Status = "skipped"   // of a step or call that never started, or was stopped because a race was over
)

// Outcome is how a call has ended.
type Outcome struct {
	Arguments any // as the tool got them
	Output    any // nil if it failed
	Message   string
	Attempts  int
	Duration  time.Duration
	EndedAt   time.Time // as its response states it; only to compare calls of a group
	// CopiedFrom is, in a retry, the tool_call_id of the call that has run in an earlier turn; "" if it ran in this one.
	CopiedFrom string
}

// Ended is a program that is over: what is stored of its calls, and how it ended.
type Ended struct {
	State    State
	Outcomes map[string]Outcome // by call id, of all calls that were started
	// Code is why the program was ended from outside: cancelled, expired, timeout; "" if its steps decide.
	Code    string
	Message string
}

// PlanResult is the payload of a plan's response.
type PlanResult struct {
	Status          Status       `json:"status"`
	Results         []CallResult `json:"results"` // of the calls that were started, in order
	Halted          bool         `json:"halted"`
	HaltReason      *string      `json:"halt_reason"`
	Skipped         []string     `json:"skipped"` // ids of the calls that never started
	Reasoning       string       `json:"reasoning,omitempty"`
	TotalDurationMS int64        `json:"total_duration_ms"`
}

// CallResult is the result of a call of a plan.
type CallResult struct {
	Call       string  `json:"call"`
	ToolName   string  `json:"tool_name"`
	Arguments  any     `json:"arguments"`
	Success    bool    `json:"success"`
	Output     any     `json:"output"`
	Error      *string `json:"error"`
	Code       string  `json:"code,omitempty"`
	Attempts   int     `json:"attempts"`
	DurationMS int64   `json:"duration_ms"`
	CopiedFrom string  `json:"copied_from,omitempty"` // in a retry, tool_call_id of the call that has run in an earlier turn
}

// OrchestrationResult is the payload of an orchestration's response.
type OrchestrationResult struct {
	Status   Status         `json:"status"`
	Success  bool           `json:"success"`
	Steps    []StepResult   `json:"steps"`    // in the order of the list
	Bindings map[string]any `json:"bindings"` // of the request and the plan, and results by their keys
	Errors   []StepError    `json:"errors"`   // each failure once
}

// StepResult is the result of a step or of a call of a group.
type StepResult struct {
	ID        string       `json:"id"`
	Type      string       `json:"type"` // agent or parallel
	Status    Status       `json:"status"`
	ExecID    string       `json:"exec_id,omitempty"` // tool_call_id of the call
	Output    any          `json:"output,omitempty"`
	Error     *CallError   `json:"error,omitempty"`
	ElapsedMS *int64       `json:"elapsed_ms,omitempty"` // of a call that started
	Children  []StepResult `json:"children,omitempty"`
}

// CallError is why a call failed.
type CallError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// StepError is a failure of a step.
type StepError struct {
	StepID string `json:"step_id"`
	Error  string `json:"error"`
}

// Status returns the status of a program that is over.
func (p *Program) Status(e Ended) Status {
	switch {
	case e.Code == string(events.CodeCancelled):
		return StatusCancelled
	case e.Code != "" || p.Next(e.State).Halt != nil:
		return StatusFailed
	}
	for i := range p.Steps {
		if p.Steps[i].failed(e.State) != nil {
			return StatusPartial
		}
	}
	return StatusSuccess
}

// Counts are how many calls of a program have ended in which way. Calls that never started are not counted.
type Counts struct {
	Succeeded, Failed int
	Stopped           int // in a race that another call has won
}

// Count counts the calls of a program that is over.
func (p *Program) Count(e Ended) (n Counts) {
	for i := range p.Steps {
		step := &p.Steps[i]
		for j := range step.Calls {
			switch state := e.State[step.Calls[j].ID]; {
			case !state.Called:
			case state.Success:
				n.Succeeded++
			case step.stopped(state, e.State):
				n.Stopped++
			default:
				n.Failed++
			}
		}
	}
	return n
}

// stopped reports whether a call was stopped because another one has won the race.
func (s *Step) stopped(call CallState, state State) bool {
	return call.Code == string(events.CodeCancelled) && s.winner(state) != nil
}

// Duration returns how long the calls of a program worked: the time of each step, and of a group the time in which at least one of
// its calls did. It follows from what is stored of the calls, so that it does not matter who ran them, and what was between them.
func (p *Program) Duration(e Ended) (total time.Duration) {
	for i := range p.Steps {
		calls := p.Steps[i].Calls
		ended := make([]Outcome, 0, len(calls))
		for j := range calls {
			if o, ok := e.Outcomes[calls[j].ID]; ok && o.Duration > 0 {
				ended = append(ended, o)
			}
		}
		total += together(ended)
	}
	return total
}

// together returns the time in which at least one of some calls worked.
func together(calls []Outcome) (total time.Duration) {
	began := func(o Outcome) time.Time { return o.EndedAt.Add(-o.Duration) }
	slices.SortFunc(calls, func(a, b Outcome) int { return began(a).Compare(began(b)) })
	var until time.Time
	for i, o := range calls {
		from := began(o)
		if i > 0 && from.Before(until) {
			from = until
		}
		if i == 0 || o.EndedAt.After(until) {
			total += o.EndedAt.Sub(from)
			until = o.EndedAt
		}
	}
	return total
}

// PlanResult returns the payload of a plan that is over.
func (p *Program) PlanResult(e Ended) PlanResult {
	r := PlanResult{
		Status: p.Status(e), Results: []CallResult{}, Skipped: []string{}, Reasoning: p.Reasoning, TotalDurationMS: p.Duration(e).Milliseconds(),
	}
	for _, call := range p.Calls() {
		state, outcome := e.State[call.ID], e.Outcomes[call.ID]
		if !state.Called {
			r.Skipped = append(r.Skipped, call.ID)
			continue
		}
		result := CallResult{
			Call: call.ID, ToolName: call.Tool, Arguments: outcome.Arguments, Success: state.Success, Code: state.Code,
			Attempts: outcome.Attempts, DurationMS: outcome.Duration.Milliseconds(), CopiedFrom: outcome.CopiedFrom,
		}
		if result.Output = outcome.Output; !state.Success {
			result.Error = &outcome.Message
		}
		r.Results = append(r.Results, result)
	}
	if halt := p.Next(e.State).Halt; halt != nil {
		message := e.Outcomes[halt.ID].Message
		r.Halted, r.HaltReason = true, &message
	} else if e.Code != "" {
		r.Halted, r.HaltReason = true, &e.Message
	}
	return r
}

// OrchestrationResult returns the payload of an orchestration that is over. ExecID returns the
// tool_call_id of a call.
func (p *Program) OrchestrationResult(e Ended, execID func(call string) string) OrchestrationResult {
	r := OrchestrationResult{Status: p.Status(e), Steps: []StepResult{}, Bindings: maps.Clone(p.Bindings), Errors: []StepError{}}
	r.Success = r.Status == StatusSuccess
	if r.Bindings == nil {
		r.Bindings = map[string]any{}
	}
	visible := func(call string) (any, bool) { return e.Outcomes[call].Output, p.Visible(call, e.State) }
	for i := range p.Steps {
		step := &p.Steps[i]
		results := make([]StepResult, len(step.Calls))
		for j := range step.Calls {
			call := &step.Calls[j]
			results[j] = step.callResult(call, e, execID)
			if results[j].Error != nil {
				r.Errors = append(r.Errors, StepError{StepID: call.ID, Error: results[j].Error.Message})
			}
			if output, ok := visible(call.ID); ok && call.Key != "" {
				r.Bindings[call.Key] = output
			}
		}
		if !step.Group {
			r.Steps = append(r.Steps, results[0])
			continue
		}
		if value, ok := step.Value(visible); ok && step.Key != "" {
			r.Bindings[step.Key] = value
		}
		r.Steps = append(r.Steps, StepResult{ID: step.ID, Type: "parallel", Status: step.groupStatus(results, e.State), Children: results})
	}
	return r
}

// callResult is the result of a step with one call, or of a call of a group.
func (s *Step) callResult(call *Call, e Ended, execID func(call string) string) StepResult {
	state, outcome := e.State[call.ID], e.Outcomes[call.ID]
	r := StepResult{ID: call.ID, Type: "agent", Status: StatusSkipped}
	if !state.Called {
		return r
	}
	r.ExecID, r.ElapsedMS = execID(call.ID), new(outcome.Duration.Milliseconds())
	switch {
	case state.Success:
		r.Status, r.Output = StatusSuccess, outcome.Output
	case s.stopped(state, e.State):
	default:
		r.Status, r.Error = StatusFailed, &CallError{Code: state.Code, Message: outcome.Message}
	}
	return r
}

// groupStatus is the status of a group with these results.
func (s *Step) groupStatus(results []StepResult, state State) Status {
	if s.winner(state) != nil {
		return StatusSuccess
	}
	succeeded, skipped := 0, 0
	for _, r := range results {
		switch r.Status {
		case StatusSuccess:
			succeeded++
		case StatusSkipped:
			skipped++
		default:
		}
	}
	switch {
	case succeeded == len(results):
		return StatusSuccess
	case skipped == len(results):
		return StatusSkipped
	case succeeded == 0:
		return StatusFailed
	default:
		return StatusPartial
	}
}
