package process

import (
	"os"
	"os/exec"
)

// Isolate does nothing on Windows: a child without process groups is killed alone.
func Isolate(*exec.Cmd) {}

// KillGroup kills a child. It does nothing if it is gone.
func KillGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
