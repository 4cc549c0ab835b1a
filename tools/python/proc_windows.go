package python

import (
	"os"
	"os/exec"
)

// Go cannot hand file descriptors 3 and 4 to a child on Windows: starting one fails there
// with the system's own message.

func isolate(*exec.Cmd) {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
