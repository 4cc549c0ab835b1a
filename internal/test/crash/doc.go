// Package crash is the crash matrix: real worker processes on a real server are killed at
// every point of the journal's path, for every effect, and the checker of package oneturntest
// checks what they have stored. Its tests need the build tag `failpoints`; `make crash` runs
// them.
//
//	harness_test.go, worker_test.go  servers, workers as processes, and what is killed at which point
//	matrix_test.go                   every point of the path of a turn without questions, for every effect
//	questions_*_test.go              the same for turns that ask: every point, races of two owners, restarts of the server
//	asking_tool_test.go              the tool of these turns
//	retries_test.go                  every point of a retry of a program
//	messages_*_test.go               messages of agents and users: every row of their table
//	programs_*_test.go               programs: every row of their table, and points of steps under load
//	external_tools_*_test.go         tools in other processes (NATS, HTTP, MCP): the processes and every point
//	cancel_test.go                   a cancel that was stored before the claim
//	mutants_test.go                  planted faults that these tests have to find
package crash
