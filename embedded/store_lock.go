package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrLocked means that another process runs a server on the same store directory.
var ErrLocked = errors.New("the store is in use by another process")

// lockName is the file in the store that carries the lock. It is never removed: removing it
// would let a third process lock a file without a name.
const lockName = "oneturn.lock"

// openStore creates and locks the store directory; closing the file unlocks it.
func openStore(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded server: create store %q, choose another with --store DIR: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded server: open store %q, choose another with --store DIR: %w", dir, err)
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(
			fmt.Errorf("embedded server: store %q: %w (%w); connect to the server that runs there with --nats URL, "+
				"or choose another directory with --store DIR", dir, ErrLocked, err),
			f.Close())
	}
	return f, nil
}
