package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// The report has the bindings and diagnostics of the folder by workflow, and adds checks that need this machine:
// whether the interpreter runs and finds the imported modules, and whether environment variables that the tools
// read are set and passed to them. Their findings are diagnostics, too.

// report is the output of turnctl check. Its JSON shape is stable: fields are only added.
type report struct {
	Workflows   []workflowReport      `json:"workflows"`
	Shared      []bindingReport       `json:"shared"`      // tools for all workflows
	Diagnostics []bindings.Diagnostic `json:"diagnostics"` // of the folder as a whole
	Digest      string                `json:"digest"`
	Errors      int                   `json:"errors"`
	Warnings    int                   `json:"warnings"`

	all     bool // the text shows every finding
	grouped int  // findings that the text has left out
}

type workflowReport struct {
	Name           string                `json:"name"`
	Dir            string                `json:"dir"` // relative to the checked folder
	Digest         string                `json:"digest"`
	Bindings       []bindingReport       `json:"bindings"`
	Variables      []variableReport      `json:"variables"` // context variables, in the order of the manifest
	Handoffs       []handoffReport       `json:"handoffs"`
	Decider        string                `json:"decider,omitempty"` // tool that answers conditions of handoffs for a model
	Corrections    []correctionsReport   `json:"corrections"`       // of outputs of agents that cannot be used
	Diagnostics    []bindings.Diagnostic `json:"diagnostics"`
	MissingModules []string              `json:"missing_modules"` // the interpreter cannot find them
	MissingEnv     []string              `json:"missing_env"`     // read by a tool, set nowhere
	HiddenEnv      []string              `json:"hidden_env"`      // set here, but no --tool-env lets it through
}

type bindingReport struct {
	Agent            string          `json:"agent"`
	Model            string          `json:"model"`
	Tool             string          `json:"tool"`
	Kind             bindings.Kind   `json:"kind"`
	Where            whereReport     `json:"where"`
	File             string          `json:"file,omitempty"` // relative to the checked folder
	Function         string          `json:"function,omitempty"`
	Effect           bindings.Effect `json:"effect"`
	EffectWhy        string          `json:"effect_why"`
	MaxAttempts      int             `json:"max_attempts"`
	TimeoutMS        int64           `json:"timeout_ms"` // of one attempt; 0 = the worker's default
	Component        string          `json:"component,omitempty"`
	Display          string          `json:"display,omitempty"`
	Secret           bool            `json:"secret,omitempty"`
	AcceptsContext   bool            `json:"accepts_context,omitempty"`
	SignatureUnknown bool            `json:"signature_unknown,omitempty"`
	RunOnKeyReuse    bool            `json:"run_on_key_reuse,omitempty"`
	CompatSilent     bool            `json:"compat_silent,omitempty"`
	CompatEvents     bool            `json:"compat_events,omitempty"`
	Program          *programReport  `json:"program,omitempty"` // of kind plan and orchestrate
}

func reportBinding(set *bindings.Set, b *bindings.Binding) bindingReport {
	return bindingReport{
		Agent: b.Agent, Model: b.ModelName, Tool: b.Tool, Kind: b.Kind, Where: whereIs(b), File: b.File, Function: b.Function,
		Effect: b.Effect, EffectWhy: b.EffectWhy, MaxAttempts: b.MaxAttempts, TimeoutMS: b.Timeout.Milliseconds(),
		Component: b.Component, Display: b.Display, Secret: b.Secret, AcceptsContext: b.AcceptsContext,
		SignatureUnknown: b.SignatureUnknown, RunOnKeyReuse: b.RunOnKeyReuse, CompatSilent: b.CompatSilent, CompatEvents: b.CompatEvents,
		Program: reportProgram(set, b),
	}
}

// newReport checks the workflows of dir.
func newReport(ctx context.Context, dir string, set *bindings.Set, cfg checkSettings, env environ) *report {
	r := &report{Workflows: []workflowReport{}, Shared: []bindingReport{}, Diagnostics: []bindings.Diagnostic{}, Digest: set.Digest()}
	if len(set.Workflows()) == 0 {
		r.Diagnostics = append(r.Diagnostics, finding(diag.SeverityError, "", "no_workflows",
			"name the folder that holds one folder for each workflow", "folder %q has no workflow", dir))
	}
	at := make(map[string]int)
	for i, name := range set.Workflows() {
		at[name] = i
		w := workflowReport{
			Name: name, Dir: set.Dir(name), Digest: set.WorkflowDigest(name),
			Bindings: []bindingReport{}, Variables: reportVariables(set, name), Diagnostics: []bindings.Diagnostic{}, MissingModules: []string{},
			Handoffs: reportHandoffs(set, name), Decider: set.Handoffs(name).Decider(), Corrections: reportCorrections(set, name),
		}
		w.MissingEnv, w.HiddenEnv = []string{}, []string{}
		r.Workflows = append(r.Workflows, w)
	}
	for _, b := range set.Bindings() {
		if i, ok := at[b.Workflow]; ok {
			r.Workflows[i].Bindings = append(r.Workflows[i].Bindings, reportBinding(set, b))
		}
	}
	for _, b := range set.Shared() {
		r.Shared = append(r.Shared, reportBinding(set, b))
	}
	for _, d := range set.Diagnostics() {
		if i, ok := at[d.Workflow]; ok {
			r.Workflows[i].Diagnostics = append(r.Workflows[i].Diagnostics, d)
		} else {
			r.Diagnostics = append(r.Diagnostics, d)
		}
	}
	usable := r.needPython(ctx, dir, cfg.Python)
	for i := range r.Workflows {
		w := &r.Workflows[i]
		imports, names := set.Python(w.Name)
		if usable {
			w.needModules(ctx, dir, cfg.Python, imports, set)
			w.needNames(ctx, dir, cfg.Python)
		}
		w.needEnv(dir, env, names)
	}
	r.count()
	return r
}

// needPython reports whether the interpreter of --python runs. A worker refuses to start with one that does
// not.
func (r *report) needPython(ctx context.Context, dir, interpreter string) bool {
	if interpreter == "" {
		return true // found per workflow
	}
	err := python.Probe(ctx, interpreter, dir)
	if err != nil {
		r.Diagnostics = append(r.Diagnostics, finding(diag.SeverityError, "", "python_unusable",
			"name a Python interpreter of version 3.9 or newer with --python", "the interpreter of --python cannot be used: %v", err))
	}
	return err == nil
}

// needModules reports missing modules that the Python files import.
func (w *workflowReport) needModules(ctx context.Context, dir, interpreter string, imports []string, set *bindings.Set) {
	missing, err := python.Missing(ctx, interpreter, dir, filepath.Join(dir, w.Dir), imports)
	if err != nil {
		text, fix := err.Error(), "name an interpreter with --python"
		if known, ok := diag.Of(err); ok {
			text, fix = known.Message, known.Fix
		}
		w.Diagnostics = append(w.Diagnostics, finding(diag.SeverityWarning, w.Name, "modules_not_checked",
			fix, "could not check whether Python modules are missing: %s", text))
	}
	if len(missing) == 0 {
		return
	}
	w.MissingModules = missing
	w.Diagnostics = append(w.Diagnostics, finding(diag.SeverityWarning, w.Name, "missing_modules",
		"install them where the worker's interpreter finds them, or name that interpreter with --python",
		"the Python interpreter does not find %s", strings.Join(imported(set, w.Name, missing), ", ")))
}

// imported lists modules with the files that import them.
func imported(set *bindings.Set, workflow string, modules []string) []string {
	const most = 3 // files of one module
	named := make([]string, len(modules))
	for i, module := range modules {
		named[i] = module
		switch files := set.Importers(workflow, module); {
		case len(files) > most:
			named[i] += fmt.Sprintf(" (%s and %d more)", strings.Join(files[:most], ", "), len(files)-most)
		case len(files) > 0:
			named[i] += " (" + strings.Join(files, ", ") + ")"
		}
	}
	return named
}

// needEnv reports unset environment variables that the Python files read. A tool may work without one, so
// this is an info and not a warning.
func (w *workflowReport) needEnv(dir string, env environ, names []string) {
	own := w.needEnvFile(dir)
	for _, name := range names {
		switch env.see(name, own) {
		case envMissing:
			w.MissingEnv = append(w.MissingEnv, name)
		case envHidden:
			w.HiddenEnv = append(w.HiddenEnv, name)
		case envVisible:
		}
	}
	if len(w.MissingEnv) > 0 {
		w.Diagnostics = append(w.Diagnostics, finding(diag.SeverityInfo, w.Name, "missing_env",
			"set them in the workflow's .env, or where the worker runs together with --tool-env",
			"tools read environment variables that are not set here: %s", strings.Join(w.MissingEnv, ", ")))
	}
	if len(w.HiddenEnv) > 0 {
		w.Diagnostics = append(w.Diagnostics, finding(diag.SeverityInfo, w.Name, "hidden_env",
			"let the worker pass them with --tool-env, or set them in the workflow's .env",
			"tools read environment variables that are set but kept from them: %s", strings.Join(w.HiddenEnv, ", ")))
	}
}

func (r *report) count() {
	all := slices.Clone(r.Diagnostics)
	for _, w := range r.Workflows {
		all = append(all, w.Diagnostics...)
	}
	for _, d := range all {
		switch d.Severity {
		case diag.SeverityError:
			r.Errors++
		case diag.SeverityWarning:
			r.Warnings++
		case diag.SeverityInfo:
		}
	}
}
