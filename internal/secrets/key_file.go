package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// maxFile bounds a key file, in bytes.
const maxFile = 64 << 10

// Load reads the text of a key file and checks it with [Parse]. A file that others may read is refused,
// except on Windows, whose rights are not in the mode.
func Load(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("secret keys: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("secret keys: %w", err)
	}
	const others = 0o077
	if mode := info.Mode(); mode.Perm()&others != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("secret keys: others may read or write %s (mode %#o): chmod 600 %s", file, mode.Perm(), file)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("secret keys: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("secret keys: %s takes over %d bytes: it is not a key file", file, maxFile)
	}
	if _, err := Parse(text); err != nil {
		return nil, fmt.Errorf("secret keys: %s: %w", file, err)
	}
	return text, nil
}

// LoadOrMake is [Load], and makes a file with a new key first if there is none. One process
// does that at a time.
func LoadOrMake(file string) ([]byte, error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		if err := writeNew(file); err != nil {
			return nil, fmt.Errorf("secret keys: make %s: %w", file, err)
		}
	}
	return Load(file)
}

// writeNew makes a key file with one key: whole, or not at all.
func writeNew(file string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".secret-keys-*") // mode 0600
	if err != nil {
		return err //nolint:wrapcheck // the caller adds the operation
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = fmt.Fprintf(f, "# Keys that seal the answers to secret questions. The first one seals, all open.\n%s\n", NewKey())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file) //nolint:wrapcheck // the caller adds the operation
}
