//go:build chaos && linux

package chaos_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// diskScenarios fill the disk under the server. They mount a small file system, which only
// root may do.
func diskScenarios() []scenario {
	return []scenario{{"disk-full", "F18", setup{servers: 1, workers: 3, rate: 60, store: mountSmall}, diskFull}}
}

// mountSmall mounts a file system of 64 MiB that goes away with the test, after its servers.
func mountSmall(r *rig) string {
	r.Helper()
	dir := r.TempDir()
	require.NoError(r.T, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"), "run as root: a small file system has to be mounted to fill it")
	r.Cleanup(func() { require.NoError(r.T, syscall.Unmount(dir, 0)) })
	return dir
}

// diskFull fills the disk to the last byte under load, makes room and restarts the server:
// JetStream stays off otherwise.
func diskFull(r *rig) {
	at := r.strike("disk full for 4 s")
	filler := filepath.Join(r.store, "filler")
	require.NoError(r.T, fill(filler))
	r.pause(4 * time.Second)
	require.NoError(r.T, os.Remove(filler))
	n := r.cluster.Nodes()[0]
	n.Kill()
	n.Start()
	r.recovers(at)
	r.settle()
}

// fill writes a file until there is no room left.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 64<<10); ; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			if len(block) == 1 {
				return nil
			}
			block = block[:1]
		} else if err != nil {
			return err
		}
	}
}
