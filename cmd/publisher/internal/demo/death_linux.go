package demo

import (
	"os/exec"
	"syscall"
)

// diesWithUs has the kernel kill the child when the thread that starts it ends, so that not
// even a kill -9 of the demo leaves workers behind. Run is called from the main goroutine,
// which the command locks to its thread.
func diesWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
