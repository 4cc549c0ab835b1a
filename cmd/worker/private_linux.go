package main

import (
	"fmt"
	"syscall"
)

// private closes the process to others of its user, tools among them: its memory, environment and
// descriptors under /proc, and debuggers. It writes no core dump, and neither do the processes that it
// starts, which are not closed.
func private() error {
	const setDumpable = 4 // PR_SET_DUMPABLE
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setDumpable, 0, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("close the process to tools: %w", errno)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("switch core dumps off: %w", err)
	}
	return nil
}
