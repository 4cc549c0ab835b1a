package bindings

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shimModules are the modules of MozaiksAI that the Python host stands in for.
func shimModules() []string {
	return []string{
		"mozaiksai.core.workflow.outputs.ui_tools", "core.workflow.outputs.ui_tools", "core.workflow.ui_tools",
		"logs.logging_config", "logs.tools_logs",
	}
}

// isShim reports whether a module is one of [shimModules] or a package around one.
func isShim(module string) bool {
	return slices.ContainsFunc(shimModules(), func(s string) bool { return s == module || strings.HasPrefix(s, module+".") })
}

// checkShims reports imports of MozaiksAI's modules that are not here: its package is neither in the
// workflows folder nor next to it, and the shims do not have them. One finding a package.
func (b *binder) checkShims(local []string) {
	missing := map[string][]string{} // by package, each module with its first place
	first := map[string]place{}
	seen := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(b.files)) {
		modules := b.files[file].Modules
		for _, module := range slices.Sorted(maps.Keys(modules)) {
			top, _, _ := strings.Cut(module, ".")
			if seen[module] || isShim(module) || !slices.ContainsFunc(shimModules(), func(s string) bool { return strings.HasPrefix(s, top+".") }) ||
				slices.Contains(local, top) || b.there(top) {
				continue
			}
			seen[module] = true
			at := place{file, modules[module]}
			if missing[top] == nil {
				first[top] = at
			}
			missing[top] = append(missing[top], fmt.Sprintf("%s (%s)", module, at))
		}
	}
	for _, top := range slices.Sorted(maps.Keys(missing)) {
		b.warnf(first[top], "missing_modules",
			"put the package "+top+" of MozaiksAI into the workflows folder or next to it, or change the imports",
			"of MozaiksAI's package %s there are stand-ins for the modules of docs/mozaiksai.md only; not here: %s", top, listed(missing[top]))
	}
}

// there reports whether a package is in the workflows folder or next to it.
func (b *binder) there(top string) bool {
	for _, dir := range []string{b.root, filepath.Dir(b.root)} {
		for _, name := range []string{top, top + ".py"} {
			if _, err := os.Stat(filepath.Join(dir, name)); b.root != "" && err == nil {
				return true
			}
		}
	}
	return false
}

// Importers returns the places in a workflow that import a top-level module, as file:line, sorted.
func (s *Set) Importers(workflow, module string) []string {
	if w := s.find(workflow); w != nil {
		return slices.Clone(w.importers[module])
	}
	return nil
}

// Empty returns why a workflow binds nothing; "" if it binds something or is not known.
func (s *Set) Empty(workflow string) string {
	if w := s.find(workflow); w != nil {
		return w.empty
	}
	return ""
}

// importers are the places of the first import of each top-level module in each file.
func importers(files map[string]PyFile) map[string][]string {
	all := map[string][]string{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		first := map[string]int{}
		for module, line := range files[file].Modules {
			top, _, _ := strings.Cut(module, ".")
			if at, ok := first[top]; !ok || line < at {
				first[top] = line
			}
		}
		for top, line := range first {
			all[top] = append(all[top], place{file, line}.String())
		}
	}
	return all
}
