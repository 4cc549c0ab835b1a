package bindings

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// InspectFunc reads Python files without running them. The keys of files and of the result are relative
// to root; a file that is missing in the result counts as not understood. The values are the contents to
// inspect, whatever the disk has by then; only files with a nil value are read from the disk.
type InspectFunc func(ctx context.Context, root string, files map[string][]byte) (map[string]PyFile, error)

// PyFile is what a Python file shows of itself without being run.
type PyFile struct {
	Functions map[string]PyFunc `json:"functions"`  // defined with def at the top level of the file
	Names     []string          `json:"names"`      // bound there in other ways: imported, assigned, classes; signature unknown
	Imports   []string          `json:"imports"`    // top-level modules that it imports, without guarded and relative imports
	Modules   map[string]int    `json:"modules"`    // full names of these modules, with the line of the first import
	EnvNames  []string          `json:"env_names"`  // environment variables that it reads
	Error     string            `json:"error"`      // why it could not be understood, "" if it could
	ErrorLine int               `json:"error_line"` // 0 when unknown
	Dynamic   bool              `json:"dynamic"`    // may bind names that Functions and Names lack: from x import *, exec, globals
}

// PyFunc is the signature of a function at the top level of a file.
type PyFunc struct {
	Params []Param `json:"params"`
	Async  bool    `json:"async"`
	Line   int     `json:"line"`
	// Asks: its code, or a function of the file that it calls, calls use_ui_tool, request_input or oneturn.ask.
	Asks bool `json:"asks"`
	// Raw has the parameters whose hints name a type that the host does not build, with its name: they get what JSON has.
	Raw map[string]string `json:"raw"`
	// Input and Output are JSON Schemas (2020-12) of the parameters and the result, made of the type hints; nil if
	// there are none.
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
}

// Param is one parameter of a [PyFunc].
type Param struct {
	Name       string    `json:"name"`
	Kind       ParamKind `json:"kind"`
	HasDefault bool      `json:"default"`
}

// ParamKind is the kind of a parameter, as Python's inspect module knows them.
type ParamKind string

// Kinds of parameters.
const (
	PositionalOnly ParamKind = "positional_only" // before the slash
	Positional     ParamKind = "positional"      // positional or keyword
	KeywordOnly    ParamKind = "keyword_only"    // after the star
	VarPositional  ParamKind = "var_positional"  // *args
	VarKeyword     ParamKind = "var_keyword"     // **kwargs
)

// hostModules are modules that the Python host provides itself.
func hostModules() []string { return []string{"mozaiksai", "core", "logs", "workflows", "oneturn"} }

// requirements gathers what the Python files of a folder need from outside: modules that
// neither the folder nor the host has, and environment variables.
func requirements(files map[string]PyFile, local []string) (imports, env []string) {
	own := append(hostModules(), local...)
	for _, f := range files {
		for _, m := range f.Imports {
			if top, _, _ := strings.Cut(m, "."); top != "" && !slices.Contains(own, top) {
				imports = append(imports, top)
			}
		}
		env = append(env, f.EnvNames...)
	}
	return sortedSet(imports), sortedSet(env)
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
