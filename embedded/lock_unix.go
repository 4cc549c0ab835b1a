//go:build unix

package embedded

import (
	"os"
	"syscall"
)

// lockFile takes the lock of an open file or fails at once. The system drops it when the
// process ends, however it ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
