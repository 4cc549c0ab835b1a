package main

import (
	"os/exec"
	"syscall"
)

// killWithParent makes the kernel kill the child when the thread that started it ends, so that
// even a kill -9 of the demo ends its workers. runDemo is called from the main goroutine, which
// main locks to its thread.
func killWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
