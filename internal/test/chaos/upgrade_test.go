//go:build chaos

package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// base names the commit whose workers run next to workers of this one.
var base = flag.String("chaos.base", "HEAD~1", "commit whose workers run next to workers of the working tree in a rolling upgrade")

// upgradeScenarios run workers of two commits at the same time.
func upgradeScenarios() []scenario {
	return []scenario{{"rolling-upgrade", "F26", setup{servers: 1, workers: 3, rate: 60, asks: 4, binary: baseWorker}, rollingUpgrade}}
}

// rollingUpgrade replaces workers of the commit before one by one, gently and not, goes back by one,
// and on again: turns that a worker of one commit has begun or parked are ended by the other.
func rollingUpgrade(r *rig) {
	const now = ""
	at := r.strike("replace each worker of %s", *base)
	for i := range r.workers {
		r.binaries[i] = now
		r.replace(i, i%2 == 0)
		r.pause(time.Second + r.jitter(time.Second)) // both run
	}
	r.recovers(at)
	at = r.strike("go back to %s with one worker, and kill one of each", *base)
	r.binaries[0] = baseWorker(r)
	r.replace(0, false)
	r.pause(time.Second + r.jitter(time.Second))
	r.replace(1, false)
	r.replace(0, false)
	r.pause(time.Second + r.jitter(time.Second))
	r.binaries[0] = now
	r.replace(0, true)
	r.recovers(at)
	r.settle()
}

// built is the test binary of the commit before. All rounds share it: it takes half a minute.
var built struct {
	once sync.Once
	path string
	err  error
}

// removeBase removes that binary.
func removeBase() {
	if built.path != "" {
		_ = os.RemoveAll(filepath.Dir(built.path)) // of the temporary files of the system
	}
}

// baseWorker returns the test binary of the commit before, in which the role of a worker is what
// it was then.
func baseWorker(r *rig) string {
	r.Helper()
	built.once.Do(func() { built.path, built.err = buildBase(r.Context()) })
	require.NoError(r.T, built.err)
	return built.path
}

// buildBase builds the tests of the commit before.
func buildBase(ctx context.Context) (string, error) {
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	commit, err := git(ctx, root, "rev-parse", "--verify", "--quiet", "--end-of-options", *base+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("the history has no commit %s to upgrade from (%w): fetch it (git fetch --deepen=1), or name another commit with -chaos.base", *base, err)
	}
	dir, err := os.MkdirTemp("", "oneturn-base-")
	if err != nil {
		return "", fmt.Errorf("build the workers of %s: %w", *base, err)
	}
	archive, source, binary := filepath.Join(dir, "source.tar"), filepath.Join(dir, "source"), filepath.Join(dir, "chaos.test")
	if err := os.Mkdir(source, 0o700); err != nil {
		return "", fmt.Errorf("build the workers of %s: %w", *base, err)
	}
	if _, err := git(ctx, root, "archive", "--format=tar", "--output="+archive, commit); err != nil {
		return "", err
	}
	if _, err := output(ctx, source, "tar", "-xf", archive); err != nil {
		return "", err
	}
	tests := "./internal/test/chaos"
	if _, err := os.Stat(filepath.Join(source, tests)); err != nil {
		tests = "./turntest/chaos" // where they were up to 2026-11
	}
	if _, err := output(ctx, source, "go", "test", "-c", "-tags=chaos", "-o", binary, tests); err != nil {
		return "", fmt.Errorf("build the workers of %s: %w", *base, err)
	}
	return binary, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(ctx, dir, "git", args...)
}

// output runs a command and returns what it prints. The error holds its message.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, text)
	}
	return text, nil
}
