package process

import (
	"fmt"
	"os"
)

// OpenPipes opens a pipe for each of its arguments, which is true for one that the worker writes to. It returns the
// ends of the worker, and those that the child gets.
func OpenPipes(toChild ...bool) (ours, theirs []*os.File, err error) {
	for _, to := range toChild {
		r, w, err := os.Pipe()
		if err != nil {
			CloseAll(ours)
			CloseAll(theirs)
			return nil, nil, fmt.Errorf("open pipes: %w", err)
		}
		if to {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	return ours, theirs, nil
}

// CloseAll closes files, some of which may be closed already.
func CloseAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
