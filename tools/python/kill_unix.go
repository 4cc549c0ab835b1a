//go:build unix

package python

import "syscall"

// killGroup kills a child and what it started. It does nothing if they are gone.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
