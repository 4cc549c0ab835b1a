package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/process"
)

// Signatures without running code: an isolated interpreter parses the files (inspect/*.py) and prints JSON.
// Missing finds modules that cannot be imported, Probe the version of an interpreter.

const (
	maxInspected = 64 << 20         // bytes that the inspecting interpreter may write
	inspectTime  = 30 * time.Second // for one run of an inspecting interpreter
	probeTime    = 10 * time.Second // for an interpreter to print its version
)

// Inspector returns [Inspect] with an interpreter, for [bindings.Options].
func Inspector(interpreter string) bindings.InspectFunc {
	return func(ctx context.Context, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
		return Inspect(ctx, interpreter, root, files)
	}
}

// Inspect reads Python files, named relative to root, by their syntax alone: no code of theirs
// runs. The values of files are their contents; files with the value nil, and only these, are read from the
// disk. All files take one process, which has 30 seconds. A file that cannot be read or parsed,
// or that is not a regular file, has Error set. The interpreter "" is found as for a [Pool], that is, in
// root too: a caller that does not trust root passes the one of [TrustedInterpreter].
func Inspect(ctx context.Context, interpreter, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
	found := make(map[string]bindings.PyFile, len(files))
	if len(files) == 0 {
		return found, nil
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("inspect Python files: %w", err)
	}
	for file := range files {
		if !filepath.IsLocal(file) {
			return nil, fmt.Errorf("inspect Python files: %q does not lie in %s", file, root)
		}
	}
	input := &inspected{root: abs, files: files, names: slices.Sorted(maps.Keys(files))}
	if err := ask(ctx, interpreter, []string{abs}, script("inspect/hint_schemas.py")+script("inspect/inspect.py"), input, &found); err != nil {
		return nil, fmt.Errorf("inspect Python files of %s: %w", root, err)
	}
	for _, file := range found {
		for name, fn := range file.Functions {
			if string(fn.Output) == "null" {
				fn.Output = nil
				file.Functions[name] = fn
			}
		}
	}
	return found, nil
}

// inspected is the input of the inspecting script: a line for each file, made when it is read, so
// that the contents of all files are never in memory twice.
type inspected struct {
	root  string
	files map[string][]byte
	names []string // still to be sent
	line  []byte   // what is left of the current one
}

// Read implements io.Reader.
func (r *inspected) Read(p []byte) (int, error) {
	if len(r.line) == 0 {
		if len(r.names) == 0 {
			return 0, io.EOF
		}
		name := r.names[0]
		line, err := json.Marshal(struct {
			Name string `json:"name"`
			Path string `json:"path"`
			Data []byte `json:"data"` // null = read the path
		}{name, filepath.Join(r.root, name), r.files[name]})
		if err != nil {
			return 0, fmt.Errorf("encode %s: %w", name, err)
		}
		line = append(line, '\n')
		r.names, r.line = r.names[1:], line
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// Missing returns the modules that the interpreter cannot find, sorted. Only the part
// of a name before its first dot counts, and nothing is imported or run: modules are looked for by
// their files. The interpreter "" is found in a workflow's folder in root, as for a [Pool]: the
// files of a .venv there are searched by the interpreter of [TrustedInterpreter].
func Missing(ctx context.Context, interpreter, root, folder string, modules []string) ([]string, error) {
	var tops []string
	for _, module := range modules {
		if top, _, _ := strings.Cut(module, "."); top != "" {
			tops = append(tops, top)
		}
	}
	if len(tops) == 0 {
		return nil, nil
	}
	slices.Sort(tops)
	var venv string
	if interpreter == "" {
		var err error
		if venv, err = environmentOf(root, folder); err != nil {
			return nil, err
		}
		if interpreter, err = TrustedInterpreter(root); err != nil {
			return nil, err
		}
	}
	var missing []string
	input, err := json.Marshal(map[string]any{"modules": slices.Compact(tops), "venv": venv})
	if err != nil {
		return nil, fmt.Errorf("look for Python modules: %w", err)
	}
	if err := ask(ctx, interpreter, nil, script("inspect/missing.py"), bytes.NewReader(input), &missing); err != nil {
		return nil, fmt.Errorf("look for Python modules: %w", err)
	}
	return missing, nil
}

// Probe returns why an interpreter cannot run Python tools: it does not exist, it is not Python, it is
// too old, or it does not answer. An interpreter of "" is found as for a [Pool] over root, but in no
// workflow's own .venv: see [ProbeWorkflow].
func Probe(ctx context.Context, interpreter, root string) error {
	return probe(ctx, interpreter, root)
}

// ProbeWorkflow is [Probe] for one workflow, whose folder is named relative to root.
func ProbeWorkflow(ctx context.Context, interpreter, root, folder string) error {
	return probe(ctx, interpreter, filepath.Join(root, folder), root)
}

// probe tries an interpreter, "" for one that is found in folders.
func probe(ctx context.Context, interpreter string, folders ...string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var version []int
	if err := ask(ctx, interpreter, folders, script("inspect/version.py"), nil, &version); err != nil {
		return fmt.Errorf("try the Python interpreter: %w", err)
	}
	if slices.Compare(version, []int{3, 9}) < 0 {
		return fmt.Errorf("try the Python interpreter: Python tools need Python 3.9 or newer, %q is version %v", interpreter, version)
	}
	return nil
}

// ask runs an embedded script: in on stdin, nil for nothing, JSON out on stdout. Without a chosen
// interpreter it looks for a .venv in folders.
func ask(ctx context.Context, chosen string, folders []string, source string, in io.Reader, out any) error {
	python, err := interpreter(chosen, folders...)
	if err != nil {
		return err
	}
	env := append(process.Environment(os.Environ(), nil), forHost...)
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-I", "-S", "-c", source) // no code of site-packages or the environment
	cmd.Dir, cmd.Env = os.TempDir(), env
	cmd.Stdin = in
	stdout, stderr := &capped{limit: maxInspected}, &capped{limit: process.MaxLine}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = drainGrace
	// An interpreter may be a script that starts another process: both end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process.Isolate(cmd)
	cmd.Cancel = func() error {
		process.KillGroup(cmd.Process.Pid)
		return nil
	}
	err = cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("run %s: it did not answer in time: %w", python, ctx.Err())
	}
	if err != nil {
		if output := bytes.TrimSpace(stderr.Bytes()); len(output) > 0 {
			return fmt.Errorf("run %s: %w: %s", python, err, output)
		}
		return fmt.Errorf("run %s: %w", python, err)
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", python, err)
	}
	return nil
}

// capped keeps the first limit bytes and lets the rest go.
type capped struct {
	bytes.Buffer
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), max(0, c.limit-c.Len()))])
	return len(p), nil
}
