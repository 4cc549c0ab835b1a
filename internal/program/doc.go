// Package program connects programs (package flow) with manifests: it finds the tools that the steps of a program may
// call, and compiles what a turn or a step gives to a tool of kind plan or orchestrate. A worker and `turnctl plan
// check` use the same code, so that a check reports what a run would. It also runs them; where their steps are stored is the matter
// of its caller ([Steps]).
//
// tools.go: [Tools] are the tools of steps with their schemas, which [Catalog] (catalog.go) compiles once for all programs.
// compile.go: [Compiler] reads the data of a turn or the arguments of a step. check.go: [Check] is the dry run; select.go: [Select] finds
// the tool for data. runner.go: [Runner] runs a program, call by call. clock.go: [Clock] bounds its time. retry.go: [Compiler.Retry]
// decides what a retry runs. started.go: the form in which it is stored and drawn. planning.go: what a planner gets.
package program
