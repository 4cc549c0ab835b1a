package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/bindings"
)

// Corrections has the metrics of outputs of agents that a model was asked to correct.
type Corrections struct {
	Asked *prometheus.CounterVec // workflow, tool, outcome: stored replies
	Spent *prometheus.CounterVec // workflow, tool, kind: tokens of these
}

func newCorrections(namespace string) Corrections {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	return Corrections{
		Asked: counter("corrections_total", "Models that were asked to correct an output of an agent, by what was read in the reply.", "workflow", "tool", "outcome"),
		Spent: counter("correction_tokens_total", "Tokens that the endpoints of these models have reported.", "workflow", "tool", "kind"),
	}
}

func (c *Corrections) all() []prometheus.Collector {
	return []prometheus.Collector{c.Asked, c.Spent}
}

// Correction counts a model that was asked to correct an output.
func (c *Corrections) Correction(b *bindings.Binding, outcome string) {
	c.Asked.WithLabelValues(b.Workflow, b.Tool, outcome).Inc()
}

// Tokens counts the tokens of a reply.
func (c *Corrections) Tokens(b *bindings.Binding, prompt, completion int64) {
	c.Spent.WithLabelValues(b.Workflow, b.Tool, "prompt").Add(float64(prompt))
	c.Spent.WithLabelValues(b.Workflow, b.Tool, "completion").Add(float64(completion))
}
