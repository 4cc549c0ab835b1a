// Package provision says which streams, buckets and consumers oneturn needs, and makes them.
//
// [New] turns options into a [Plan]: plain values, no I/O. [Apply] creates or updates
// what the plan says and refuses what would lose records or weaken the promise. [Check]
// only looks, for readiness and the doctor. Workers never create or change anything at run
// time: a bucket that vanished and came back empty would let every old turn run again.
package provision
