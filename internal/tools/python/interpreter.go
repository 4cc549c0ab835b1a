package python

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// Which Python runs a workflow: locate finds its folder, interpreter the program by fixed rules, pythonOf reports
// a virtual environment that is broken instead of skipping it.

// place is where a workflow lives.
type place struct {
	root   string // folder that holds the workflow's folder
	folder string // the workflow's folder
}

// locate finds a workflow: the folder of its name in root, or root itself if it is that folder.
func locate(root, workflow string) (place, error) {
	if workflow == "" || strings.ContainsAny(workflow, "/\\\x00") || strings.HasPrefix(workflow, ".") {
		return place{}, fmt.Errorf("workflow %q is not the name of a folder", workflow)
	}
	folder := filepath.Join(root, workflow)
	if info, err := os.Stat(folder); err == nil && info.IsDir() {
		return place{root: root, folder: folder}, nil
	}
	if filepath.Base(root) == workflow {
		return place{root: filepath.Dir(root), folder: root}, nil
	}
	return place{}, fmt.Errorf("workflow %q has no folder in %s: restore it under that name", workflow, root)
}

// interpreter returns the absolute path of the Python to use: the chosen one, else the one of the first
// folder with a .venv, which are the workflow's and the workflows folder, $VIRTUAL_ENV, else python3 of
// the path. A virtual environment
// whose interpreter is there and cannot be run, as after an upgrade of Python, is an error: the tool
// would miss its modules. Relative names count
// from the worker's folder, whatever folder the process runs in. Links are kept: they are how a
// virtual environment is recognised.
func interpreter(chosen string, folders ...string) (string, error) {
	if chosen != "" {
		path, err := program(chosen)
		if err != nil {
			return "", fmt.Errorf("interpreter %s (set with --python): %w", chosen, err)
		}
		return path, nil
	}
	var places []string
	for _, folder := range folders {
		if venv := filepath.Join(folder, ".venv"); !slices.Contains(places, venv) {
			places = append(places, venv)
		}
	}
	venvs := places
	if active := os.Getenv("VIRTUAL_ENV"); active != "" {
		venvs = append(slices.Clone(places), active)
	}
	for _, venv := range venvs {
		if path, err := pythonOf(venv); path != "" || err != nil {
			return path, err
		}
	}
	path, err := program("python3")
	if err != nil {
		return "", notFound("in " + strings.Join(append(places, "$VIRTUAL_ENV"), ", ") + " or $PATH")
	}
	return path, nil
}

func notFound(where string) error {
	return diag.Errorf("", "", "install Python 3.9 or newer or set --python", "no Python found %s", where)
}

// pythonOf returns the interpreter of a virtual environment, "" if it has none.
func pythonOf(venv string) (string, error) {
	name := filepath.Join(venv, "bin", "python")
	path, err := program(name)
	if err == nil {
		return path, nil
	}
	if !exists(name) {
		return "", nil
	}
	return "", diag.Errorf("", "", fmt.Sprintf("re-create the virtual environment with python3 -m venv --clear %s, or remove it", venv),
		"%s exists and cannot be run (%v)", name, err)
}

// exists reports whether there is a file of a name, be it a link to nothing.
func exists(name string) bool {
	_, err := os.Lstat(name) //nolint:gosec // the operator names the folder
	return err == nil
}

// program finds an executable by its path, or by its name in $PATH.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) { // a relative folder in $PATH is the user's choice
		var named *exec.Error
		if errors.As(err, &named) {
			err = named.Err
		}
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return "", err // without the name, which the caller gives
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the folder of %s: %w", name, err)
	}
	return path, nil
}
