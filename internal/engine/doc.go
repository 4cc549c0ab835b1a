// Package engine runs calls of tools, phase by phase: resolve, arguments, cache, guards of the
// input, limits, invoke with a deadline and retries, normalize, guards of the output, store. It
// uses neither NATS nor the journal; a panic, a hang and a tool that ignores its context are all
// outcomes. docs/engine.md describes the phases for users.
//
// [Engine.Do] in engine.go is the list of the phases. In reading order:
//
//   - engine.go: [Engine], its [Options], the [Invocation] and the order of the phases.
//   - tool.go: [Tool], and the interfaces of the cache and the limiter.
//   - phases.go: the phases, except invoke.
//   - cache_key.go, result_cache.go: which calls share a result; the cache in memory.
//   - retry.go: the phase invoke: attempts, the pauses between them.
//   - attempt.go: one attempt in a separate goroutine: its host ([Hosts]), entered, timed out, abandoned.
//   - attempt_clock.go: the time of an attempt, which stands still while a person is asked.
//   - outcome.go: results and errors in the terms of a tool_response.
//   - tracer.go: observers of calls, among them the log; phase_events.go: what they are notified of.
package engine
