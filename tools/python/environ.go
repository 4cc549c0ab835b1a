package python

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/oneturn/oneturn/internal/dotenv"
	"github.com/oneturn/oneturn/internal/process"
)

const minSecret = 6 // shorter values of a .env file are not redacted in the log

// forHost is what embedded scripts need of their environment.
//
//nolint:gochecknoglobals // a constant
var forHost = []string{"PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1", "PYTHONIOENCODING=utf-8:backslashreplace"}

// environment builds the environment of a child: from the worker's own, what every tool needs
// and what the allow-list names; then the .env file of the folder; then what the host needs. It
// returns the values of the .env file too, to keep them out of the log. Statements of the file
// that set nothing are logged.
func environment(log *slog.Logger, own, allow []string, folder string) (env, secrets []string, err error) {
	env = process.Environment(own, allow)
	vars, err := variables(log, filepath.Join(folder, ".env"), env)
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
func variables(log *slog.Logger, path string, env []string) ([]dotenv.Variable, error) {
	file, err := dotenv.Read(path)
	if err != nil {
		return nil, err
	}
	if n := len(file.Problems); n > 0 {
		first := file.Problems[0]
		log.Warn("statements of .env that set nothing", "file", path, "count", n, "line", first.Line, "problem", first.Text, "fix", first.Fix)
	}
	vars, err := file.Variables(env)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return vars, nil
}
