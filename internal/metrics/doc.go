// Package metrics defines the Prometheus metrics of the handlers and of the sweeps.
//
// [Metrics] counts messages, turns, questions and dead letters as the handlers see them (metrics.go), with [Programs]
// (program.go), [Messages] (message.go) and [Corrections] (corrections.go); [Sweep] shows what the last sweep of a worker found (sweep.go).
// docs/operations.md explains every one. Metrics of tools are in
// internal/worker/tool_metrics.go.
package metrics
