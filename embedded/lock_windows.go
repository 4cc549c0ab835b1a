package embedded

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the lock of an open file or fails immediately. The system drops it when the
// process ends, however it ends.
func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	if err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{}); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	return nil
}

// unlockFile gives the lock up.
func unlockFile(f *os.File) error {
	if err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{}); err != nil {
		return fmt.Errorf("unlock file: %w", err)
	}
	return nil
}
