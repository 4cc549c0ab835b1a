// Package provision defines which streams, buckets and consumers oneturn needs, and makes them.
//
// [New] turns options (options.go) into a [Plan] (plan.go): plain values, no I/O. [Apply] (apply.go)
// creates or updates what is planned and refuses what would lose records or weaken the promise. [Check]
// (check.go) only reads, for readiness and the doctor. Both compare the state of the server
// (server_state.go) with the plan, setting by setting (compare.go). Workers never create or change
// anything at run time: a bucket that vanished and is re-created empty would let every old turn run again.
package provision
