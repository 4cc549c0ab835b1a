package worker

import (
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools"
)

// Tool is a Go function that a worker can run.
type Tool struct {
	Name     string
	Invoker  tools.Invoker
	Types    bindings.Registered   // schemas of its types
	Declared *bindings.Declaration // nil for a tool that a oneturn.yaml binds by name
	Err      error                 // of its definition, reported by [New]
}

// checkTools reports Go tools that can never run: registered, but bound to nothing.
func checkTools(registered []Tool, set *bindings.Set) error {
	bound := map[string]bool{}
	named := append(set.Bindings(), set.Shared()...)
	for _, workflow := range set.Workflows() {
		named = append(named, set.Tools(workflow)...)
	}
	for _, b := range named {
		if b.Kind == bindings.KindGo {
			bound[b.Tool] = true
		}
	}
	var errs []error
	for _, t := range registered {
		d := t.Declared
		switch {
		case bound[t.Name]:
		case d == nil:
			errs = append(errs, fmt.Errorf("oneturn.NewTool(%q): the tool is bound to nothing: set ToolOptions.Workflow and Agent, or add a oneturn.yaml in Workflows with a tool of this name and `kind: go`", t.Name))
		case d.Workflow == "":
			errs = append(errs, fmt.Errorf("oneturn.NewTool(%q): set ToolOptions.Workflow, or remove all options and set them in a oneturn.yaml", t.Name))
		default:
			for _, found := range set.Diagnostics() {
				if found.Severity == diag.SeverityError && found.Workflow == d.Workflow {
					errs = append(errs, unbound(t.Name, found))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// unbound is the error of a tool of a workflow with a finding, which may be about the tool itself or about a manifest.
func unbound(tool string, found bindings.Diagnostic) error {
	if itself := fmt.Sprintf("oneturn.NewTool(%q)", tool); found.Place() != itself {
		return fmt.Errorf("%s: %s", itself, found)
	}
	return errors.New(found.String())
}
