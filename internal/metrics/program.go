package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/bindings"
)

// Programs counts the programs of turns, and the steps of programs, whose response this worker stored.
type Programs struct {
	Ended       *prometheus.CounterVec   // workflow, kind, status
	Steps       *prometheus.CounterVec   // workflow, tool, status
	Refusals    *prometheus.CounterVec   // reason
	Seconds     *prometheus.HistogramVec // workflow, kind: of the last owner, without waits for people
	StepSeconds *prometheus.HistogramVec // workflow, tool: with its records, without waits for people
}

func newPrograms(namespace string) Programs {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets()}, labels)
	}
	return Programs{
		Ended:    counter("programs_total", "Turns whose tool is a program and whose response this worker stored.", "workflow", "kind", "status"),
		Steps:    counter("program_steps_total", "Steps of programs whose response this worker stored.", "workflow", "tool", "status"),
		Refusals: counter("program_refusals_total", "Programs that were not run.", "reason"),
		Seconds: seconds("program_seconds", "Time that a program ran in the worker that ended it, without waits for people.",
			"workflow", "kind"),
		StepSeconds: seconds("program_step_seconds", "Time of a step with its records, without waits for people.", "workflow", "tool"),
	}
}

func (p *Programs) all() []prometheus.Collector {
	return []prometheus.Collector{p.Ended, p.Steps, p.Refusals, p.Seconds, p.StepSeconds}
}

// Program counts a program that has ended. Took is 0 for one that this worker has not run.
func (p *Programs) Program(b *bindings.Binding, status string, took time.Duration) {
	p.Ended.WithLabelValues(b.Workflow, string(b.Kind), status).Inc()
	if took > 0 {
		p.Seconds.WithLabelValues(b.Workflow, string(b.Kind)).Observe(took.Seconds())
	}
}

// Step counts a step that has ended; b is nil if no manifest has its tool (any more). Took is 0 for a step that this worker
// has not run.
func (p *Programs) Step(b *bindings.Binding, status string, took time.Duration) {
	workflow, tool := Other, Other
	if b != nil {
		workflow, tool = b.Workflow, b.Tool
	}
	p.Steps.WithLabelValues(workflow, tool, status).Inc()
	if took > 0 {
		p.StepSeconds.WithLabelValues(workflow, tool).Observe(took.Seconds())
	}
}
