//go:build unix

package embedded

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the lock of an open file or fails immediately. The system drops it when the
// process ends, however it ends.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("flock: %w", err)
	}
	return nil
}

// unlockFile gives the lock up. Closing the file is not enough: a child process that is being
// forked at this moment holds a copy of it until it runs its program.
func unlockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
		return fmt.Errorf("flock: %w", err)
	}
	return nil
}
