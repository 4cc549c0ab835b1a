package python

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/dotenv"
	"github.com/oneturn/oneturn/internal/process"
)

const minSecret = 6 // shorter values of a .env file are not redacted in the log

// forHost is what embedded scripts need of their environment.
//
//nolint:gochecknoglobals // a constant
var forHost = []string{"PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1", "PYTHONIOENCODING=utf-8:backslashreplace"}

// environment makes the environments of the processes of one version of a workflow.
type environment struct {
	mu     sync.Mutex
	logged []diag.Finding // of the .env file
}

// build makes the environment of a child: from the worker's own, what every tool needs and what the
// allow-list names; then the .env file, named relative to root, which it cannot lead out of; then
// what the host needs. It returns the values of the .env file too, to keep them out of the log.
// Invalid statements of the file are logged once, and again when they have changed.
func (e *environment) build(log *slog.Logger, own, allow []string, root, dotEnv string) (env, secrets []string, err error) {
	env = process.Environment(own, allow)
	vars, err := e.variables(log, root, dotEnv, env)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range vars {
		env = append(env, v.Name+"="+v.Value)
		if len(v.Value) >= minSecret {
			secrets = append(secrets, v.Value)
		}
	}
	return append(env, forHost...), secrets, nil
}

// variables reads a .env file, whose references see the environment of the tools.
func (e *environment) variables(log *slog.Logger, root, name string, env []string) ([]dotenv.Variable, error) {
	path := filepath.Join(root, name)
	file, err := dotenv.Read(root, name)
	if err != nil {
		return nil, err
	}
	if n := len(file.Problems); e.news(file.Problems) && n > 0 {
		first := file.Problems[0]
		log.Warn("invalid statements of .env ignored", "file", path, "count", n, "line", first.Line, "problem", first.Message, "fix", first.Fix)
	}
	vars, err := file.Variables(env)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return vars, nil
}

// news records problems, and reports whether they differ from those before.
func (e *environment) news(problems []diag.Finding) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	same := slices.Equal(problems, e.logged)
	e.logged = problems
	return !same
}
