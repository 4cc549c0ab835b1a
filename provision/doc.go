// Package provision defines which streams, buckets and consumers oneturn needs, and makes them.
//
// Workers never create or change anything at run time: a bucket that vanished and is re-created empty would
// let every old turn run again. The files, in reading order:
//
//   - options.go: what can be chosen, with defaults and bounds
//   - plan.go: [New] turns options into a [Plan], plain values without I/O
//   - server_state.go, server_version.go: what the server has
//   - compare.go: the settings that count, the rule of each, and the differences
//   - exceptions.go: settings that matter more or less on one stream than on the others
//   - apply.go: [Apply] creates and updates, and refuses what would lose records or weaken the promise
//   - check.go: [Check] only reads, for the doctor
//   - readiness.go: [Require] is the check of a worker that starts
//   - running_workers.go: whether workers run, for changes that are refused then
//   - durability_tier.go: what stored records survive ([ReadTier])
//   - store_usage.go, store_headroom.go: how full a limited store is, and what has to stay free
package provision
