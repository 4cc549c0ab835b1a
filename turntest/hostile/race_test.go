//go:build race

package hostile_test

// slowdown is what the race detector costs.
const slowdown = 10
