package main

import (
	"fmt"
	"syscall"
)

// makeUndumpable protects the process from others of the same user, including tools: its memory, environment
// and descriptors under /proc, and from debuggers. It writes no core dump, and neither do the processes that
// it starts, which are not protected.
func makeUndumpable() error {
	const setDumpable = 4 // PR_SET_DUMPABLE
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setDumpable, 0, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("close the process to tools: %w", errno)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("switch core dumps off: %w", err)
	}
	return nil
}
