// Package limits makes calls of tools wait until they may begin: a [Limiter] bounds how many calls run at the same time
// in this worker, and how many begin in a time over all workers, for a tool and for each tenant of it. Waiting calls are
// served in the order in which they came; they cost no goroutine and no requests.
//
// A rate is a generic cell rate algorithm: the bucket of a [KV] holds one time for each rate, until which its places are
// taken. A worker takes places for all calls that wait in it by one compare-and-set, and lets each begin when its place
// has come.
//
// In reading order:
//
//   - limiter.go: [Limiter.Wait], which a call passes before it begins. concurrency.go: its wait for a free slot.
//   - rate_queue.go: the calls of this worker that wait for one rate. rate_places.go: takes places for them and returns
//     unused ones. rate_plan.go: which places calls get, a pure function.
//   - store.go: what workers share. clock.go: the server's time.
package limits
