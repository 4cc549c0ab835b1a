// Package flow compiles programs: turns whose data is a list of calls instead of the arguments of
// one tool. A plan is a list of calls that refer to the outputs of earlier calls; an orchestration
// is a list of steps, each one agent or a group of agents that run at the same time.
//
// A program is checked as a whole before its first step: every reference leads to an output that
// is declared and comes earlier, every literal argument fits its tool, and no limit is exceeded.
// [CompilePlan] and [CompileOrchestration] return either a [Program] or a [*Refused] with all that
// is wrong at once and feedback for the model that wrote it. References are paths, never code, and
// what tools return is never read for references.
//
// How the parts fit: program.go has the frozen program and its limits, tool.go what the compiler
// has to know of a tool. plan.go and orchestration.go read the two formats, reference.go
// (`$0.output.title`) and template.go (`{{ result.facts.title }}`) their references. check.go
// compares references with declared outputs; schema.go answers which fields and types a JSON Schema
// declares. resolve.go gives a call its arguments once the outputs that it needs exist.
// problem.go reports what is wrong, feedback.go tells the model.
package flow
