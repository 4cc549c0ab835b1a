//go:build !linux

package main

import "os/exec"

// killWithParent does nothing here: workers are killed when the demo ends, but not when the demo
// itself is killed.
func killWithParent(*exec.Cmd) {}
