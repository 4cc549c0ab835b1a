package toolbox

import (
	"context"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// InspectPython returns the function that reads the signatures of Python tools for
// [bindings.Load], with an interpreter ("" = the workflow folder's .venv, $VIRTUAL_ENV,
// python3) and without running the files.
func InspectPython(interpreter string) bindings.InspectFunc {
	return func(ctx context.Context, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
		found, err := python.Inspect(ctx, interpreter, root, files)
		if err != nil {
			return nil, err
		}
		inspected := make(map[string]bindings.PyFile, len(found))
		for name, f := range found {
			file := bindings.PyFile{
				Functions: make(map[string]bindings.PyFunc, len(f.Functions)),
				Imports:   f.Imports, Modules: f.Modules, EnvNames: f.EnvNames, Error: f.Error, ErrorLine: f.ErrorLine,
				Names: f.Names, Dynamic: f.Dynamic,
			}
			for name, fn := range f.Functions {
				params := make([]bindings.Param, len(fn.Params))
				for i, p := range fn.Params {
					params[i] = bindings.Param{Name: p.Name, Kind: paramKinds[p.Kind], HasDefault: p.HasDefault}
				}
				file.Functions[name] = bindings.PyFunc{Params: params, Async: fn.Async, Line: fn.Line, Asks: fn.Asks, Raw: fn.Raw, Input: fn.Input, Output: fn.Output}
			}
			inspected[name] = file
		}
		return inspected, nil
	}
}

//nolint:gochecknoglobals // a read-only table
var paramKinds = map[python.ParamKind]bindings.ParamKind{
	python.PositionalOnly: bindings.PositionalOnly,
	python.Positional:     bindings.Positional,
	python.KeywordOnly:    bindings.KeywordOnly,
	python.VarPositional:  bindings.VarPositional,
	python.VarKeyword:     bindings.VarKeyword,
}
