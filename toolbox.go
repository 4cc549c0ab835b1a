package oneturn

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tools"
	"github.com/oneturn/oneturn/tools/python"
)

// toolbox finds what runs a binding: a registered Go function or a Python function.
type toolbox struct {
	c      Config
	golang map[string]tools.Invoker
	python *python.Pool // nil without a workflow folder
}

func newToolbox(c Config) (*toolbox, error) {
	b := &toolbox{c: c, golang: make(map[string]tools.Invoker, len(c.Tools))}
	for _, t := range c.Tools {
		if _, twice := b.golang[t.name]; twice {
			return nil, fmt.Errorf("two tools are named %q: names of Go tools must differ", t.name)
		}
		b.golang[t.name] = t.tool
	}
	if c.Workflows != "" {
		b.python = python.NewPool(python.Options{
			Root: c.Workflows, Interpreter: c.Python.Interpreter, Size: c.Python.Children, Env: c.Python.Env,
			LoadTimeout: c.Python.LoadTimeout, Logger: c.Logger,
		})
	}
	return b, nil
}

// options says what to load, and how to read Python files.
func (b *toolbox) options() bindings.Options {
	o := bindings.Options{Root: b.c.Workflows, Logger: b.c.Logger, Inspect: InspectPython(b.c.Python.Interpreter)}
	for _, t := range b.c.Tools {
		if t.declared != nil && t.declared.Workflow != "" {
			o.Declared = append(o.Declared, *t.declared)
		}
	}
	return o
}

// find returns the tool of a binding.
func (b *toolbox) find(binding *bindings.Binding) (tools.Invoker, error) {
	switch binding.Kind {
	case bindings.KindGo:
		if t, ok := b.golang[binding.Tool]; ok {
			return t, nil
		}
		return nil, &events.Error{Code: events.CodeUnknownTool, Op: "find tool", Msg: fmt.Sprintf(
			"Go tool %q of workflow %s is not part of this worker: register it with oneturn.NewTool", binding.Tool, binding.Workflow)}
	case bindings.KindPython:
		if b.python != nil {
			return b.python.Tool(binding.Dir, binding.File, binding.Function), nil
		}
	}
	return nil, &events.Error{Code: events.CodeUnknownTool, Op: "find tool", Msg: fmt.Sprintf("this worker runs no %s tools", binding.Kind)}
}

// renew puts the Python files that the set was checked with in force for workflows whose code
// or manifests have changed. Turns that have found their tool keep the version they found. old
// is nil at the start.
func (b *toolbox) renew(old, set *bindings.Set) {
	if b.python == nil {
		return
	}
	dirs := map[string]string{} // of workflows, by folder
	note := func(s, other *bindings.Set) {
		for _, binding := range s.Bindings() {
			if binding.Kind == bindings.KindPython && (other == nil || binding.Digest != other.WorkflowDigest(binding.Workflow)) {
				dirs[binding.Dir] = binding.Workflow
			}
		}
	}
	note(set, old)
	if old != nil {
		note(old, set) // also those that have no Python tools any more
	}
	for dir, workflow := range dirs {
		b.python.Renew(dir, set.Sources(workflow))
	}
}

// closeTimeout bounds how long the end of a worker waits for its Python processes.
const closeTimeout = 5 * time.Second

func (b *toolbox) close() {
	if b.python == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := b.python.Close(ctx); err != nil {
		b.c.Logger.Warn("Python processes did not end in time", "err", err)
	}
}

//nolint:gochecknoglobals // read-only
var (
	pythonChildren = prometheus.NewDesc("oneturn_python_children", "Python processes now.", nil, nil)
	pythonRunning  = prometheus.NewDesc("oneturn_python_running", "Calls that Python processes run now.", nil, nil)
	pythonWaiting  = prometheus.NewDesc("oneturn_python_waiting", "Calls that wait for a Python process.", nil, nil)
	pythonAsking   = prometheus.NewDesc("oneturn_python_asking", "Calls in Python processes that wait for people and take no room there.", nil, nil)
	pythonStarted  = prometheus.NewDesc("oneturn_python_started_total", "Python processes started.", nil, nil)
	pythonDied     = prometheus.NewDesc("oneturn_python_died_total", "Python processes that ended while in use.", nil, nil)
)

// Describe implements prometheus.Collector.
func (b *toolbox) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pythonChildren, pythonRunning, pythonWaiting, pythonAsking, pythonStarted, pythonDied} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (b *toolbox) Collect(ch chan<- prometheus.Metric) {
	var s python.Stats
	if b.python != nil {
		s = b.python.Stats()
	}
	ch <- prometheus.MustNewConstMetric(pythonChildren, prometheus.GaugeValue, float64(s.Children))
	ch <- prometheus.MustNewConstMetric(pythonRunning, prometheus.GaugeValue, float64(s.Running))
	ch <- prometheus.MustNewConstMetric(pythonWaiting, prometheus.GaugeValue, float64(s.Waiting))
	ch <- prometheus.MustNewConstMetric(pythonAsking, prometheus.GaugeValue, float64(s.Asking))
	ch <- prometheus.MustNewConstMetric(pythonStarted, prometheus.CounterValue, float64(s.Started))
	ch <- prometheus.MustNewConstMetric(pythonDied, prometheus.CounterValue, float64(s.Died))
}
