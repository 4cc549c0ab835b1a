//go:build unix && !linux

package python

import (
	"os/exec"
	"syscall"
)

// isolate puts the child into a process group of its own. When the worker dies, the child
// sees the end of its frames and exits.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
