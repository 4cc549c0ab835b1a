// Package failpoint lets tests stop a worker at a named point of the journal's path. Without
// the build tag `failpoints` every function is empty and compiles to nothing; a test checks that
// for the released commands. The points inside the rules of package idempotency come with an overlay, see package
// internal/test/mutants.
//
// With the tag, the variable ONETURN_FAILPOINTS specifies what happens at which point, for example
//
//	after_claim=kill@3;finish=drop_ack;before_ack=stop
//
// kill: SIGKILL to the own process. stop: SIGSTOP, until another process continues it. drop_ack: the
// write is stored and reported as unknown. drop_req: the write is not sent and reported as
// unknown. @N: at the N-th hit only (default 1); @* at every hit;
// @odd: at every other one. Each action is first
// recorded in the file that ONETURN_FAILPOINT_LOG names.
package failpoint
