// Package guards decides which calls may happen and which results may be used. A guard of a
// manifest ([Compile]) and a guard in Go ([Input], [Output], or any [Guard]) are the same to the
// engine: they are asked in order by [AdmitInput] and [AdmitOutput], and the first refusal ends
// the call.
//
// In reading order:
//
//   - guards.go: [Guard], [Refusal], and guards made of functions.
//   - admit.go: asks the guards of a call, which may panic or fail.
//   - manifest_guard.go: [Declared], a guard as a manifest writes it, and [Compile].
//   - checks.go: what Compile returns: a guard with one check of the arguments or of the result.
//   - schema.go, size.go, secret_scan.go, condition.go (condition_numbers.go): the four checks.
//   - agent_allowlist.go: [Allow], which agents may call which tools.
//   - cache_callers.go: callers that a guard distinguishes do not share cached results.
package guards
