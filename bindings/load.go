package bindings

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/plural"
)

// [Load] reads the shared file, then each workflow (parsed_workflow.go), inspects the Python files of all that
// changed in one process, and binds them. A workflow with new errors keeps its previous version, if there is one.

// Options specify what to load.
type Options struct {
	Root     string        // workflows folder; "" = only Declared
	Declared []Declaration // bindings made in Go code
	// Registered are the Go functions of this program, for their schemas; nil = it is not the
	// program that runs tools, so what they are is not known.
	Registered map[string]Registered
	Variables  VariableSources
	Inspect    InspectFunc   // reads Python signatures; nil = Python tools are bound with unknown signature
	Logger     *slog.Logger  // nil = silent
	From       *Set          // the active set when Watch begins: a workflow that has new errors by then stays as it is there; nil = nothing
	Debounce   time.Duration // Watch waits this long for silence after a change, though at most 2 s if it is shorter; 0 = 200 ms
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// Load reads every workflow under Root. It fails only if the root cannot be read, a
// declaration is incomplete, or ctx ends: errors in manifests are diagnostics of the set.
func Load(ctx context.Context, opts Options) (*Set, error) {
	set, err := load(ctx, &opts, nil)
	if err == nil {
		set.log(ctx, opts.logger(), slog.LevelInfo)
	}
	return set, err
}

// log logs what was loaded.
func (s *Set) log(ctx context.Context, logger *slog.Logger, level slog.Level) {
	logger.Log(ctx, level, "workflows loaded", "workflows", len(s.names), "bindings", len(s.bindings),
		"errors", s.count(diag.SeverityError), "warnings", s.count(diag.SeverityWarning), "digest", s.digest, "took", s.took)
}

// load reads all workflows; those that are as in previous are taken from it.
func load(ctx context.Context, opts *Options, previous *Set) (*Set, error) {
	start := time.Now()
	declared, err := byWorkflow(opts.Declared)
	if err != nil {
		return nil, err
	}
	set := &Set{workflows: make(map[string]*workflow)}
	drafts, err := set.read(ctx, opts, declared, previous)
	if err != nil {
		return nil, err
	}
	files, inspected, err := set.inspect(ctx, opts, drafts)
	if err != nil {
		return nil, err
	}
	done := make([]*workflow, len(drafts))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, d := range drafts {
		group.Go(func() error {
			if done[i] = d.same; d.same == nil {
				done[i] = bind(d, own(files, d.python), opts, inspected)
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("load workflows: %w", err)
	}
	for _, w := range done {
		set.workflows[w.name] = w
		if previous != nil {
			set.workflows[w.name] = w.over(previous.workflows[w.name])
		}
	}
	set.finish()
	set.took = time.Since(start)
	return set, nil
}

// read reads all folders, and makes workflows for declarations without folder.
func (s *Set) read(ctx context.Context, opts *Options, declared map[string][]Declaration, previous *Set) ([]*parsedWorkflow, error) {
	dirs := make(map[string]string)
	var root *os.Root
	if opts.Root != "" {
		var err error
		if root, err = os.OpenRoot(opts.Root); err != nil {
			return nil, fmt.Errorf("open the workflows folder: %w: create it, or name an existing folder (worker --workflows, Config.Workflows)", err)
		}
		defer root.Close()
		var single bool
		var clash string
		if dirs, single, clash, err = discover(root, opts.Root); err != nil {
			return nil, err
		}
		if clash != "" {
			s.general = append(s.general, finding(diag.SeverityError, "", "", "name_clash", "rename one of them",
				"two folders have the name %s, written in two forms of Unicode; one of them is not read", quoted(clash)))
		}
		if single {
			s.general = append(s.general, finding(diag.SeverityInfo, "", "", "root_is_workflow",
				"name the folder above it to load all workflows next to it", "the workflows folder has manifests itself and is taken as one workflow"))
		}
	}
	s.shared = readShared(root, opts, previous)
	names := maps.Clone(dirs)
	for name := range declared {
		if _, ok := names[name]; !ok {
			names[name] = ""
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	drafts := make([]*parsedWorkflow, len(sorted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range sorted {
		group.Go(func() error {
			drafts[i] = parseWorkflow(root, name, names[name], declared[name], s.shared, previous)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("load workflows: %w", err)
	}
	return drafts, nil
}

// inspect reads the signatures of all Python files in one call. If that fails, tools are bound
// with unknown signatures, and the next load tries again.
func (s *Set) inspect(ctx context.Context, opts *Options, drafts []*parsedWorkflow) (files map[string]PyFile, inspected bool, err error) {
	if opts.Inspect == nil {
		return nil, true, nil
	}
	sources := make(map[string][]byte)
	for _, d := range drafts {
		if d.same == nil {
			maps.Copy(sources, d.python)
		}
	}
	if len(sources) == 0 {
		return nil, true, nil
	}
	files, err = opts.Inspect(ctx, opts.Root, sources)
	switch {
	case ctx.Err() != nil:
		return nil, false, fmt.Errorf("inspect Python files: %w", ctx.Err())
	case err != nil:
		severity := diag.SeverityWarning // perhaps no tool needs these files
		if slices.ContainsFunc(drafts, (*parsedWorkflow).callsPython) {
			severity = diag.SeverityError
		}
		message, fix := err.Error(), "install Python 3.9 or newer, or name an interpreter that runs with --python"
		if known, ok := diag.Of(err); ok {
			message, fix = known.Message, known.Fix
		}
		s.general = append(s.general, finding(severity, "", "", "not_inspected", fix, "%s", message))
		return nil, false, nil
	}
	return files, true, nil
}

// own picks the inspected files of one workflow.
func own(files map[string]PyFile, sources map[string][]byte) map[string]PyFile {
	picked := make(map[string]PyFile, len(sources))
	for n := range sources {
		if f, ok := files[n]; ok {
			picked[n] = f
		}
	}
	return picked
}

// over returns the workflow to use after old, nil if there was none: w, or the old version if w has
// errors that the old one had not. Where both are the same version, the later verdict on it counts.
func (w *workflow) over(old *workflow) *workflow {
	if old == nil {
		return w
	}
	fresh, where := 0, w.dir
	for _, d := range w.own {
		if d.Severity == diag.SeverityError && !slices.ContainsFunc(old.own, d.same) {
			fresh++
			if w.dir == "." { // the shared file: it has no folder
				where = d.File
			}
		}
	}
	kept := *old
	kept.shown = kept.own
	if w == old || old.digest == w.digest && w.uninspected {
		return &kept
	}
	if fresh == 0 || old.digest == w.digest {
		return w
	}
	kept.shown = append(slices.Clone(w.own), finding(diag.SeverityError, w.name, where, "kept_previous",
		"fix the errors; the next save is tried again",
		"the edit brought %s; version %s from before it stays in use", plural.Of(fresh, "new error"), old.digest))
	return &kept
}

// finish fills what is derived from the workflows.
func (s *Set) finish() {
	s.names = slices.Sorted(maps.Keys(s.workflows))
	s.folded = make(map[string][]string, len(s.names))
	s.diagnostics = s.general
	sum := sha256.New()
	for _, name := range s.names {
		w := s.workflows[name]
		folded := string(appendFolded(nil, name))
		if others := s.folded[folded]; len(others) > 0 {
			s.diagnostics = append(s.diagnostics, finding(diag.SeverityWarning, name, w.dir, "case_clash", "rename one of them",
				"workflow %s differs from %s in letter case only; each is found by its exact name only", quoted(name), together(others)))
		}
		s.folded[folded] = append(s.folded[folded], name)
		s.bindings = append(s.bindings, w.bindings...)
		s.diagnostics = append(s.diagnostics, w.shown...)
		hashPart(sum, name, []byte(w.digest))
	}
	if s.shared != nil {
		s.diagnostics = append(s.diagnostics, s.shared.shown...)
		hashPart(sum, sharedSection, []byte(s.shared.digest))
	}
	s.digest = shortHash(sum)
	slices.SortStableFunc(s.diagnostics, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

// Errors counts the errors of the manifests, including the errors of a refused edit.
func (s *Set) Errors() int { return s.count(diag.SeverityError) }

// count counts findings. A kept version is not one: its errors are in the list as well.
func (s *Set) count(severity diag.Severity) int {
	n := 0
	for _, d := range s.diagnostics {
		if d.Severity == severity && d.Code != "kept_previous" {
			n++
		}
	}
	return n
}
