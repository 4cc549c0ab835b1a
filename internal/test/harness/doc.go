// Package harness is what the long tests of this repository share beyond the test kit of users
// (package oneturntest): clusters of real NATS servers that can be killed, cut off and rejoined
// (cluster.go, links.go, membership.go), a TCP proxy that delays, limits and cuts (proxy.go), steady
// load that knows what was accepted (load.go), the smallest worker (greeter.go), a buffer for logs and output of
// processes that is read while it is written (output_buffer.go), and what is checked at the end: secrets that must be
// found nowhere (secret_canary.go), resources and processes that are left (resources.go, goroutine_leaks.go), and fair shares
// of the throughput (rate_share.go).
package harness
