package python

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
	return place{}, fmt.Errorf("workflow %q has no folder in %s: put it back under that name", workflow, root)
}

// interpreter returns the Python to use: the chosen one, else that of the workflow's .venv,
// the root's .venv, $VIRTUAL_ENV, else python3 of the path.
func interpreter(chosen string, at place) (string, error) {
	if chosen != "" {
		path, err := exec.LookPath(chosen)
		if err != nil {
			return "", fmt.Errorf("interpreter %s (set with --python): %w", chosen, err)
		}
		return path, nil
	}
	for _, venv := range []string{
		filepath.Join(at.folder, ".venv"), filepath.Join(at.root, ".venv"), os.Getenv("VIRTUAL_ENV"),
	} {
		if venv == "" {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(venv, "bin", "python")); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", fmt.Errorf("no Python found: neither a .venv in %s or %s, nor $VIRTUAL_ENV, nor python3 in the path; "+
			"install Python 3.9 or newer or set --python: %w", at.folder, at.root, err)
	}
	return path, nil
}
