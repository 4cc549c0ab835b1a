package agui

import (
	"errors"
	"fmt"
	"strings"
)

// Rules about runs: one run a stream, from RUN_STARTED to RUN_FINISHED or RUN_ERROR, with the ids of the input; what is open
// at RUN_FINISHED is an error; each interrupt has its id; steps and subagents are balanced.

// checkAny checks what holds for all events.
func (v *Verifier) checkAny(e Event) error {
	if v.over {
		return errors.New("the run has ended: send nothing more")
	}
	if _, isError := e.(*RunError); !v.started && !isError {
		if _, isStart := e.(*RunStarted); !isStart {
			return errors.New("the first event has to be RUN_STARTED or RUN_ERROR")
		}
	}
	if t := e.base().Timestamp; t < 0 || t > maxTime {
		return fmt.Errorf("timestamp %d is not in milliseconds since 1970", t)
	}
	if Downgrade(e, v.peer) != e {
		return errors.New("the client is from before 1.0 and rejects this: send what Downgrade returns")
	}
	return nil
}

func (v *Verifier) runStarted(e *RunStarted) error {
	if v.started {
		return errors.New("the run has started already")
	}
	if err := v.sameRun(e.ThreadID, e.RunID); err != nil {
		return err
	}
	if p, err := ParsePeer(e.ProtocolVersion); err != nil || p.Before1() {
		return fmt.Errorf("protocolVersion %.20q: send %q", e.ProtocolVersion, ProtocolVersion)
	}
	v.started = true
	if e.Input != nil {
		v.history(e.Input.Messages)
	}
	return nil
}

func (v *Verifier) sameRun(thread, run string) error {
	if thread != v.thread || run != v.run {
		return fmt.Errorf("threadId %.100q and runId %.100q differ from the input's %.100q and %.100q", thread, run, v.thread, v.run)
	}
	return nil
}

func (v *Verifier) runFinished(e *RunFinished) error {
	if err := v.sameRun(e.ThreadID, e.RunID); err != nil {
		return err
	}
	for open := range v.open {
		return fmt.Errorf("%s %.100q is open: close it first", open.kind, open.id)
	}
	if err := v.outcome(e.Outcome); err != nil {
		return err
	}
	v.over = true
	return nil
}

func (v *Verifier) outcome(o *Outcome) error {
	if o == nil {
		return nil
	}
	if o.Type != OutcomeInterrupt && len(o.Interrupts) > 0 || o.Type != OutcomeSuccess && len(o.PendingToolCallIDs) > 0 {
		return fmt.Errorf("outcome %.20q has fields of another one: make it with Success, Interrupted or Cancelled", o.Type)
	}
	switch o.Type {
	case OutcomeSuccess:
		return v.pendingCalls(o.PendingToolCallIDs)
	case OutcomeInterrupt:
		return v.interrupts(o.Interrupts)
	case OutcomeCancelled:
		return nil
	default:
		return fmt.Errorf("unknown outcome %.20q: use success, interrupt or cancelled", o.Type)
	}
}

// pendingCalls checks the calls that the client is asked to run. Calls that the server still works on are without a result too,
// and are not among them.
func (v *Verifier) pendingCalls(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	listed := make(map[string]bool, len(ids))
	for _, id := range ids {
		switch {
		case listed[id]:
			return fmt.Errorf("pending call %.100q is listed twice", id)
		case !v.has(aCall, id):
			return fmt.Errorf("pending call %.100q is unknown to the client: list calls that it has", id)
		case v.has(aResult, id):
			return fmt.Errorf("pending call %.100q has a result: list calls without one", id)
		}
		listed[id] = true
	}
	return nil
}

func (v *Verifier) interrupts(open []Interrupt) error {
	if len(open) == 0 {
		return errors.New("an interrupt outcome without interrupts: send those that are open, or the outcome success")
	}
	listed := make(map[string]bool, len(open))
	for _, i := range open {
		switch {
		case i.ID == "" || i.Reason == "":
			return fmt.Errorf("interrupt %.100q: id and reason are required", i.ID)
		case listed[i.ID]:
			return fmt.Errorf("interrupt %.100q is listed twice", i.ID)
		case i.ToolCallID != "" && v.has(aResult, i.ToolCallID):
			return fmt.Errorf("interrupt %.100q asks for call %.100q, which has a result", i.ID, i.ToolCallID)
		case i.ResponseSchema != nil && !strings.HasPrefix(strings.TrimSpace(string(i.ResponseSchema)), "{"):
			return fmt.Errorf("interrupt %.100q: responseSchema has to be an object", i.ID)
		}
		listed[i.ID] = true
	}
	return nil
}

func (v *Verifier) stepStarted(e *StepStarted) error {
	if err := needed("stepName", e.StepName); err != nil {
		return err
	}
	step := entity{aStep, e.StepName, e.SubagentRunID}
	if _, open := v.open[step]; open {
		return fmt.Errorf("step %.100q is open already: finish it first", e.StepName)
	}
	if len(v.open) >= maxOpen {
		return errOpen
	}
	v.open[step] = nil
	return nil
}

func (v *Verifier) subagentStarted(e *SubagentStarted) error {
	if err := needed("name", e.Name); err != nil {
		return err
	}
	if parent := e.ParentSubagentRunID; parent != "" && !v.has(aSubagent, parent) {
		return fmt.Errorf("parent %.100q has not been started in this run", parent)
	}
	return v.start(entity{kind: aSubagent, id: e.SubagentRunID}, aSubagent, "")
}
