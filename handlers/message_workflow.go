package handlers

import (
	"fmt"
	"log/slog"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// What follows from a message needs the manifests of its workflow: start values, tools, handoff rules. A worker that does not
// have them leaves a message that was read by one that has (docs/journal.md#rule-14). A message that was read without them is a text
// and nothing more, with an undecided handoff for its orchestrator.

// codeUnknownWorkflow is the code of a handoff that is undecided because the worker that has stored the message did not have
// its workflow.
const codeUnknownWorkflow = "unknown_workflow"

// absentWorkflowError is the error of a message whose workflow this worker does not have.
type absentWorkflowError struct {
	workflow string
	lease    idempotency.Lease // of the message
}

// Error implements error.
func (e *absentWorkflowError) Error() string {
	return fmt.Sprintf("workflow %.80q of the message is unknown here: start a worker that has it", e.workflow)
}

// lacksWorkflow returns an error for a message that was read with its workflow, if this worker does not have it.
func (h *Handlers) lacksWorkflow(s *chatMessage) error {
	if s.unknownWorkflow() || h.Bindings().WorkflowDigest(s.WorkflowName) != "" {
		return nil
	}
	return &absentWorkflowError{workflow: s.WorkflowName, lease: s.record.Meta.Lease}
}

// unknownWorkflow reports whether the message was read without the manifests of its workflow.
func (s *chatMessage) unknownWorkflow() bool { return s.record.Meta.Digest == "" }

// mayFollow returns an error if something is left to do for a message that takes its workflow, and this worker does not have it.
func (h *Handlers) mayFollow(s *chatMessage) error {
	lacks := h.lacksWorkflow(s)
	if lacks == nil {
		return nil
	}
	done := len(s.Changes) == 0 && s.Model == ""
	var err error
	switch {
	case s.handsOff(): // the last record
		done, err = h.Journal.Followed(s.m.Held, &s.record, s.key, events.RecordHandoff)
	case s.Turn != "": // the rest is done as for any turn
		done, err = h.isTurnClaimed(s)
	}
	switch {
	case err != nil:
		return err
	case done:
		return nil
	case s.Turn != "": // a later delivery may claim it
		s.m.mayHold = []subjects.Key{subjects.TurnKey(s.AppID, s.ChatID, s.RunID, s.Turn)}
	}
	return lacks
}

// awaitWorkflow requeues a message for a worker that has the workflow.
func (h *Handlers) awaitWorkflow(m *message, absent *absentWorkflowError) inbound.Disposition {
	h.logThrottled(m, slog.LevelWarn, "a message waits for a worker that has its workflow", "", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery, "err", events.LogText(absent))
	return h.requeueLease(m, absent.lease.Same(m.Lease))
}

// isTurnClaimed reports whether the turn of a message is claimed, by it or by an event.
func (h *Handlers) isTurnClaimed(s *chatMessage) (bool, error) {
	claims, err := h.Journal.Claims(s.m.Held, subjects.TurnKey(s.AppID, s.ChatID, s.RunID, s.Turn))
	if err != nil {
		return false, fmt.Errorf("read the claim of the turn: %w", err)
	}
	return claims[0] != nil, nil
}
