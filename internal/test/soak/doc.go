// Package soak makes the report of a long run: what a worker uses over time, how fast it was
// at the beginning and at the end, and what was broken. Package chaos has the run itself.
package soak
