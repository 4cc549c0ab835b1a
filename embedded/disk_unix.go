//go:build linux || darwin || freebsd

package embedded

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes returns how much the file system of a directory still takes from this user.
func freeBytes(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(min(uint64(max(fs.Bavail, 0))*uint64(fs.Bsize), 1<<62)), nil //nolint:unconvert // the types differ between systems
}
