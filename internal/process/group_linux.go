package process

import (
	"os/exec"
	"syscall"
)

// Isolate puts the child into a separate process group and has the kernel kill it when the
// thread that starts it ends: the caller keeps that thread for the child's whole life.
func Isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
