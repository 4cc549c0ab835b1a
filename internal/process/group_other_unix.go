//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// Isolate puts the child into a separate process group. When the worker dies, the child
// sees the end of its input and exits.
func Isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
