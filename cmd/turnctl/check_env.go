package main

import (
	"path/filepath"
	"strings"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/dotenv"
)

const maxEnvProblems = 8 // statements of one .env that are named

// visibility is whether a Python tool gets an environment variable.
type visibility int

const (
	envVisible visibility = iota
	envMissing            // set nowhere
	envHidden             // set here, but the worker does not pass it to tools
)

// environ is the environment of a worker that is started where turnctl runs.
type environ struct {
	lookup func(string) (string, bool)
	allow  []string // NAME or PREFIX_*, as --tool-env takes them
}

// see returns whether a tool would get a variable, by the rules of package python: all of the workflow's
// .env, and the allowed part of the worker's environment.
func (e environ) see(name string, dotEnv map[string]bool) visibility {
	const always, never = "PATH HOME LANG LC_* TZ TMPDIR VIRTUAL_ENV SYSTEMROOT", "ONETURN_* NATS_*"
	if dotEnv[name] {
		return envVisible
	}
	if _, set := e.lookup(name); !set {
		return envMissing
	}
	if matches(name, strings.Fields(never)) || !matches(name, append(strings.Fields(always), e.allow...)) {
		return envHidden
	}
	return envVisible
}

// matches reports whether a list of NAME and PREFIX_* holds name.
func matches(name string, patterns []string) bool {
	for _, pattern := range patterns {
		prefix, wild := strings.CutSuffix(pattern, "*")
		if name == pattern || wild && prefix != "" && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// needEnvFile reads the workflow's .env, and returns the names that it sets.
func (w *workflowReport) needEnvFile(dir string) map[string]bool {
	name := filepath.Join(w.Dir, ".env")
	at := func(severity diag.Severity, code, fix, format string, args ...any) {
		d := finding(severity, w.Name, code, fix, format, args...)
		d.File = filepath.ToSlash(name)
		w.Diagnostics = append(w.Diagnostics, d)
	}
	file, err := dotenv.Read(dir, name)
	if err == nil {
		_, err = file.Variables(nil)
	}
	if err != nil {
		at(diag.SeverityError, "env_file_unreadable", "make .env a readable file: a Python tool of this workflow cannot start without it", "%v", err)
		return nil
	}
	for i, p := range file.Problems {
		if i == maxEnvProblems {
			at(diag.SeverityWarning, "env_file_statement", "correct those first", "%d more invalid statements were ignored", len(file.Problems)-i)
			break
		}
		at(diag.SeverityWarning, "env_file_statement", p.Fix, "invalid statement ignored: %s", p.Message)
		w.Diagnostics[len(w.Diagnostics)-1].Line = p.Line
	}
	return file.Names()
}
