//go:build !race

package hostile_test

const slowdown = 1
