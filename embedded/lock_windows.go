package embedded

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the lock of an open file or fails at once. The system drops it when the
// process ends, however it ends.
func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
}
