package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Messages counts the messages of agents and users, and what follows from them, as far as this worker stored it.
type Messages struct {
	Handled        *prometheus.CounterVec // workflow, kind, outcome
	Hidden         *prometheus.CounterVec // workflow
	Repairs        *prometheus.CounterVec // workflow, repair
	Changes        *prometheus.CounterVec // workflow, by
	Handoffs       *prometheus.CounterVec // workflow, outcome
	MessageSeconds prometheus.Histogram   // from stored in the inbound stream to text stored
}

// Outcomes of messages.
const (
	MessageText       = "text"              // stored, and neither a turn nor a structured output follows
	MessageTurn       = "turn"              // stored, and its object is the turn of its agent
	MessageOutput     = "structured_output" // stored, and its object is stored as an event
	MessageUnreadable = "unreadable"        // stored, but it has no object that can be read, as its agent has to send
	MessageDuplicate  = "duplicate"         // it was stored before
	MessageConflict   = "conflict"          // another message with its id was stored before
)

// Outcomes of handoffs.
const (
	HandoffDecided   = "decided"   // there is a next speaker
	HandoffUndecided = "undecided" // a rule cannot be decided, or a later message was handled before
	HandoffNoRule    = "no_rule"   // no rule applies
)

// What changes variables, besides tools.
const (
	ChangedByMessage = "message"
	ChangedByAnswer  = "answer"
)

func newMessages(namespace string) Messages {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	return Messages{
		Handled:  counter("messages_total", "Messages of agents and users that this worker handled.", "workflow", "kind", "outcome"),
		Hidden:   counter("messages_hidden_total", "Messages of agents that this worker stored as hidden.", "workflow"),
		Repairs:  counter("message_repairs_total", "Messages of agents whose JSON was repaired, by what was repaired.", "workflow", "repair"),
		Changes:  counter("variable_changes_total", "Context variables that messages and answers have changed.", "workflow", "by"),
		Handoffs: counter("handoffs_total", "Handoffs that this worker stored.", "workflow", "outcome"),
		MessageSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "message_seconds", Help: "Time from the inbound stream to the stored text of a message.", Buckets: buckets(),
		}),
	}
}

func (m *Messages) all() []prometheus.Collector {
	return []prometheus.Collector{m.Handled, m.Hidden, m.Repairs, m.Changes, m.Handoffs, m.MessageSeconds}
}
