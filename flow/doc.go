// Package flow compiles programs: turns whose data is a list of calls instead of the arguments of
// one tool. A plan is a list of calls that refer to the outputs of earlier calls; an orchestration
// is a list of steps, each one agent or a group of agents that run at the same time.
//
// A program is checked as a whole before its first step: every reference leads to an output that
// is declared and comes earlier, every literal argument fits its tool, and no limit is exceeded.
// [CompilePlan] and [CompileOrchestration] return either a [Program] or a [*Refused] with all
// problems and feedback for the model that wrote the program. References are paths, never code, and
// the results of tools are never searched for references.
//
// The package does no I/O. [Program.Next] decides from the stored responses which calls to start or
// to stop, so every worker that continues a program decides the same; [Program.Resolve] gives a call
// its arguments; [Program.PlanResult] and [Program.OrchestrationResult] make the payload of the
// response.
//
// A program is hostile until it is compiled: the compiler bounds the references, the nesting, its
// walks over schemas, its checks of literal arguments and the length of what it reports. What lies
// beyond such a bound is checked when the call starts.
//
// Values are JSON trees of nil, bool, string, [encoding/json.Number], []any and map[string]any.
//
// # Files
//
// The program and what surrounds it:
//
//   - program.go: [Program], [Step], [Call], [Limits], [Options]
//   - tool.go: [Tool] and [Tools], what the compiler knows of the tools
//   - problem.go, feedback.go: [Refused], its problems, and the text for the model
//   - warnings.go, warnings_values.go: what a dry run reports in addition; aliases.go: keys written in place of others
//
// Compiling:
//
//   - compiler.go: what plans and orchestrations share: counts, limits, nested programs, JSON pointers
//   - uses.go: finds the texts with references in arguments, and writes their places
//   - plan.go, check_plan.go: plans, and the check of their references and arguments
//   - orchestration.go, check_orchestration.go: orchestrations, and their check; object.go: reads their objects key by key;
//     unknown_names.go: why a reference leads nowhere
//   - reference.go: the references of plans, `$0.output.title`
//   - template.go, names.go: the references of orchestrations, `{{ result.facts.title }}`, and the names that they begin with
//   - schema.go, declared.go, typeset.go: the fields that a JSON Schema declares, and the types that they may have
//
// Running:
//
//   - resolve.go: the arguments of a call, once the outputs that it needs exist
//   - progress.go: [State], [Next], the call that wins a race
//   - result.go: the payloads of responses
//   - retry.go: the calls that keep their ends when a program is retried
package flow
