package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// What a Python tool sees of an environment variable.
type visibility int

const (
	envVisible visibility = iota
	envMissing            // set nowhere
	envHidden             // set here, but the worker keeps it from tools
)

// environ is the environment of a worker that is started where turnctl runs.
type environ struct {
	lookup func(string) (string, bool)
	allow  []string // NAME or PREFIX_*, as --tool-env takes them
}

// see tells what a tool would see of a variable, by the rules of package tools/python: all of
// the workflow's .env, and of the worker's environment what is allowed.
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

// dotEnvNames returns the names that a .env file sets. A missing file sets none. Values are
// not kept.
func dotEnvNames(path string) (map[string]bool, error) {
	const limit = 64 << 10 // a larger one keeps tools from starting
	// A named pipe would block the open, hence the check before.
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // no file sets no names
	case err != nil:
		return nil, fmt.Errorf("read the workflow's .env: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: it must be a regular file", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("read %s: it has %d bytes, over the limit of %d", path, info.Size(), limit)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the workflow's .env: %w", err)
	}
	defer file.Close()
	names := make(map[string]bool)
	lines := bufio.NewScanner(io.LimitReader(file, limit))
	for lines.Scan() {
		line := strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff")), "export ")
		name, _, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if ok && name != "" && !strings.HasPrefix(name, "#") && !strings.ContainsAny(name, " \t\x00") {
			names[name] = true
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the workflow's .env: %w", err)
	}
	return names, nil
}
