// Package tools defines what a turn can call: an [Invoker], the [Call] it receives and the
// [Result] it returns. [Func] implements it for Go functions; packages python, natstool, mcptool,
// httptool and agent for tools outside the process.
//
// In reading order:
//
//   - invoker.go: [Invoker], [Call], [Result]; prompt.go: what the product asks an agent.
//   - artifact.go: ids of artifacts and skills in results.
//   - describe.go: what an invoker reports about itself; info.go: what a call reports to its tool.
//   - host.go, step.go: what a running call may do ([Host]): questions, surfaces, progress, named steps.
//   - deadline.go, retry.go: the end of an attempt, and which errors may be retried.
//   - effect_state.go: errors after which the effect of a call has happened, or may have.
//   - func.go, decode_args.go, vars.go: Go functions as tools: arguments, context variables.
package tools
