package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CheckFolder refuses a folder of workflows that does not exist or is a file.
func CheckFolder(dir string) error {
	info, err := os.Stat(dir)
	const fix = "name the folder that holds one folder for each workflow, for example examples/01-hello/workflows"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %q does not exist: %s", dir, fix)
	case err != nil:
		return fmt.Errorf("%w: %s", err, fix)
	case !info.IsDir():
		return fmt.Errorf("%q is not a folder: %s", dir, fix)
	}
	return nil
}
