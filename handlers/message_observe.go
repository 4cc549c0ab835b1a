package handlers

import (
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/metrics"
)

// What a worker counts of messages. It counts what it has stored, so of each message one worker counts each event.

// countMessage counts a message.
func (h *Handlers) countMessage(e *events.AgentMessage, outcome string) {
	h.Metrics.Handled.WithLabelValues(h.workflowLabel(e.Workflow), e.InboundKind(), outcome).Inc()
}

// countText counts a message whose text was stored just now.
func (h *Handlers) countText(s *chatMessage, e *events.AgentMessage) {
	outcome := metrics.MessageText
	switch {
	case s.Unread != nil && s.StructuredOutput == nil:
		outcome = metrics.MessageUnreadable
	case s.Turn != "":
		outcome = metrics.MessageTurn
	case s.StructuredOutput != nil:
		outcome = metrics.MessageOutput
	}
	h.countMessage(e, outcome)
	h.Metrics.MessageSeconds.Observe(h.age(s.m).Seconds())
	workflow := h.workflowLabel(e.Workflow)
	if s.UIHidden {
		h.Metrics.Hidden.WithLabelValues(workflow).Inc()
	}
	for _, repair := range s.Repairs {
		h.Metrics.Repairs.WithLabelValues(workflow, repair).Inc()
	}
}

// countChange counts a variable whose change was reported.
func (h *Handlers) countChange(stored *idempotency.Record, workflow, by string) {
	if stored.Time.IsZero() { // else it was reported before
		h.Metrics.Changes.WithLabelValues(h.workflowLabel(workflow), by).Inc()
	}
}

// countHandoff counts a handoff.
func (h *Handlers) countHandoff(stored *idempotency.Record, workflow string, d *handoff.Decision) {
	if !stored.Time.IsZero() {
		return // it was stored before
	}
	outcome := metrics.HandoffDecided
	switch d.Reason {
	case handoff.ReasonUndecided:
		outcome = metrics.HandoffUndecided
	case handoff.ReasonNoRule:
		outcome = metrics.HandoffNoRule
	case handoff.ReasonCondition, handoff.ReasonLLM, handoff.ReasonAfterWork, handoff.ReasonLastSpeaker:
	}
	h.Metrics.Handoffs.WithLabelValues(h.workflowLabel(workflow), outcome).Inc()
}

// workflowLabel is the name of a workflow as its manifests have it: messages may spell it in other ways.
func (h *Handlers) workflowLabel(name string) string {
	agent, err := h.Bindings().Agent(name, "")
	if err != nil {
		return metrics.Other
	}
	return agent.Workflow
}
