package worker

import (
	"github.com/prometheus/client_golang/prometheus"
)

//nolint:gochecknoglobals // read-only
var (
	pythonChildren = prometheus.NewDesc("oneturn_python_children", "Python processes now.", nil, nil)
	pythonRunning  = prometheus.NewDesc("oneturn_python_running", "Calls that Python processes run now.", nil, nil)
	pythonWaiting  = prometheus.NewDesc("oneturn_python_waiting", "Calls that wait for a Python process.", nil, nil)
	pythonAsking   = prometheus.NewDesc("oneturn_python_asking", "Calls in Python processes that wait for people and take no room there.", nil, nil)
	pythonStarted  = prometheus.NewDesc("oneturn_python_started_total", "Python processes started.", nil, nil)
	pythonDied     = prometheus.NewDesc("oneturn_python_died_total", "Python processes that ended while in use.", nil, nil)
	mcpSessions    = prometheus.NewDesc("oneturn_mcp_sessions", "Sessions with MCP servers now.", nil, nil)
	mcpStarted     = prometheus.NewDesc("oneturn_mcp_started_total", "Sessions with MCP servers started.", nil, nil)
	mcpDied        = prometheus.NewDesc("oneturn_mcp_died_total", "Sessions with MCP servers that broke, or whose process ended by itself.", nil, nil)
	limitWaiting   = prometheus.NewDesc("oneturn_limit_waiting", "Calls that wait for a limit of their tool.", nil, nil)
)

// Describe implements prometheus.Collector.
func (t *workerTools) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		pythonChildren, pythonRunning, pythonWaiting, pythonAsking, pythonStarted, pythonDied,
		mcpSessions, mcpStarted, mcpDied, limitWaiting,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (t *workerTools) Collect(ch chan<- prometheus.Metric) {
	s := t.PythonStats()
	ch <- prometheus.MustNewConstMetric(pythonChildren, prometheus.GaugeValue, float64(s.Children))
	ch <- prometheus.MustNewConstMetric(pythonRunning, prometheus.GaugeValue, float64(s.Running))
	ch <- prometheus.MustNewConstMetric(pythonWaiting, prometheus.GaugeValue, float64(s.Waiting))
	ch <- prometheus.MustNewConstMetric(pythonAsking, prometheus.GaugeValue, float64(s.Asking))
	ch <- prometheus.MustNewConstMetric(pythonStarted, prometheus.CounterValue, float64(s.Started))
	ch <- prometheus.MustNewConstMetric(pythonDied, prometheus.CounterValue, float64(s.Died))
	m := t.MCPStats()
	ch <- prometheus.MustNewConstMetric(mcpSessions, prometheus.GaugeValue, float64(m.Sessions))
	ch <- prometheus.MustNewConstMetric(mcpStarted, prometheus.CounterValue, float64(m.Started))
	ch <- prometheus.MustNewConstMetric(mcpDied, prometheus.CounterValue, float64(m.Died))
	waiting := 0
	if limiter := t.limiter.Load(); limiter != nil {
		waiting = limiter.Waiting()
	}
	ch <- prometheus.MustNewConstMetric(limitWaiting, prometheus.GaugeValue, float64(waiting))
}
