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

// PyFile is what a Python file shows of itself.
type PyFile struct {
	Functions map[string]PyFunc
	Names     []string       // bound in other ways than def: imported, assigned; signature unknown
	Imports   []string       // top-level names of imported modules
	Modules   map[string]int // full names of these modules, with the line of the first import
	EnvNames  []string       // environment variables that the file reads
	Error     string         // syntax error, "" if none
	ErrorLine int
	Dynamic   bool // names may be bound in ways that the syntax does not show
}

// PyFunc is the signature of a function at the top level of a file.
type PyFunc struct {
	Params []Param
	Async  bool
	Line   int
	Asks   bool // seems to ask people
	// Raw has the parameters whose hints name a type that is not built for them, with its name.
	Raw map[string]string
	// Input and Output are JSON Schemas of the parameters and the result, made of the type hints;
	// nil if there are none.
	Input, Output json.RawMessage
}

// Param is one parameter of a [PyFunc].
type Param struct {
	Name       string
	Kind       ParamKind
	HasDefault bool
}

// ParamKind is the kind of a parameter, as Python's inspect module knows them.
type ParamKind int

// Kinds of parameters.
const (
	PositionalOnly ParamKind = iota // before the slash
	Positional                      // positional or keyword
	KeywordOnly                     // after the star
	VarPositional                   // *args
	VarKeyword                      // **kwargs
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
