//go:build unix

package process

import "syscall"

// KillGroup kills a child and what it started. It does nothing if they are gone.
func KillGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
