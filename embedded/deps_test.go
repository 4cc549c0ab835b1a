package embedded_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnlyEmbeddedAndItsCommandsLinkTheServer keeps 16 MB out of every program that brings
// its own connection.
func TestOnlyEmbeddedAndItsCommandsLinkTheServer(t *testing.T) {
	t.Parallel()
	require.True(t, linksServer(t, "embedded"), "the test would see it")
	seen := 0
	for _, dir := range []string{
		".", "subjects", "events", "bindings", "bindings/model", "idempotency", "engine", "handlers",
		"flow", "tools", "tools/python", "config", "provision", "gateway", "agui",
	} {
		if !holdsPackage(t, filepath.Join("..", dir)) {
			continue
		}
		seen++
		require.False(t, linksServer(t, dir), "%s must not import the server, nor package embedded", dir)
	}
	require.Positive(t, seen)
}

// holdsPackage reports whether dir has Go files other than tests.
func holdsPackage(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			return true
		}
	}
	return false
}

// linksServer asks the go command for all dependencies of a package of this module.
func linksServer(t *testing.T, dir string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "./"+filepath.ToSlash(dir))
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Contains(string(out), "github.com/nats-io/nats-server/")
}
