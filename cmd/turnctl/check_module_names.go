package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// needNames warns of Python files with the name of a module of the interpreter: an import of that name gets
// the module, in every file.
func (w *workflowReport) needNames(ctx context.Context, dir, interpreter string) {
	folder := filepath.Join(dir, w.Dir)
	files := map[string]string{} // by the name under which they would be imported
	for _, at := range []string{"", "tools"} {
		entries, err := os.ReadDir(filepath.Join(folder, at))
		if err != nil {
			continue // other checks report unreadable folders
		}
		for _, entry := range entries {
			if name, ok := strings.CutSuffix(entry.Name(), ".py"); ok && name != "__init__" && !strings.Contains(name, ".") {
				files[name] = filepath.Join(at, entry.Name())
			}
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	missing, err := python.Missing(ctx, interpreter, dir, folder, names)
	if err != nil {
		return // reported with the modules that files import
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(missing, name) {
			w.Diagnostics = append(w.Diagnostics, bindings.Diagnostic{Workflow: w.Name, Finding: diag.Finding{
				Severity: diag.SeverityWarning, File: filepath.ToSlash(filepath.Join(w.Dir, files[name])), Code: "file_named_like_module",
				Message: "the file has the name of a Python module: `import " + name + "` gets that module",
				Fix:     "rename the file, or import it with `from . import " + name + "`",
			}})
		}
	}
}
