// Package callhost has what all hosts of a tool call ([tools.Host]) do in the same way: the one of a worker
// (internal/run), the one at a terminal (turnctl call) and the one of tests (internal/test/memhost). Names gives
// questions and surfaces their ids (names.go), and Steps keeps the results of steps in memory (steps.go).
package callhost
