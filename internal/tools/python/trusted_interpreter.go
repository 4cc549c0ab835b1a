package python

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TrustedInterpreter returns the interpreter that inspects a folder of workflows whose author is not trusted to
// run anything: the one of $VIRTUAL_ENV, else python3 of $PATH, and never one inside the folder. The
// folder's own .venv is for workers, which run its code anyway.
func TrustedInterpreter(root string) (string, error) {
	inspected, err := resolved(root)
	if err != nil {
		return "", fmt.Errorf("find the folder %s: %w", root, err)
	}
	var candidates []string
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" {
		candidates = append(candidates, filepath.Join(venv, "bin", "python"))
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		candidates = append(candidates, filepath.Join(folder, "python3"))
	}
	for _, candidate := range candidates {
		abs, err := filepath.Abs(candidate)
		if err != nil {
			continue
		}
		if path, err := program(abs); err == nil && outside(inspected, path) {
			return path, nil
		}
	}
	return "", notFound("in $VIRTUAL_ENV or $PATH outside " + root)
}

// outside reports whether a program and what it links to are not in a folder.
func outside(folder, program string) bool {
	parent, err1 := resolved(filepath.Dir(program))
	target, err2 := resolved(program)
	return err1 == nil && err2 == nil && !within(folder, parent) && !within(folder, target)
}

// within reports whether a path is a folder or in it.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolved is the absolute path without links.
func resolved(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller names the path
	}
	return filepath.EvalSymlinks(abs) //nolint:wrapcheck // the caller names the path
}

// environmentOf returns the virtual environment that the interpreter of a workflow belongs to, by the
// rules of a [Pool] for an interpreter of "" but without $VIRTUAL_ENV; "" if there is none.
func environmentOf(root, folder string) (string, error) {
	for _, at := range []string{folder, root} {
		venv := filepath.Join(at, ".venv")
		switch path, err := pythonOf(venv); {
		case err != nil:
			return "", err
		case path != "":
			return venv, nil
		}
	}
	return "", nil
}
