package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

// binaries builds the commands once and returns the folder that holds them. Without the data of debuggers, linking takes
// half the time.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "oneturn-docs-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags=-s", "-o", dir, "./cmd/worker", "./cmd/gateway", "./cmd/publisher", "./cmd/turnctl")
	build.Dir, build.Stderr = "..", os.Stderr
	return dir, build.Run()
})

// built reports whether a test has requested the binaries.
var built atomic.Bool

func TestMain(m *testing.M) {
	oneturntest.VerifyNoLeaks(m, goleak.Cleanup(func(code int) {
		if built.Load() {
			if dir, err := binaries(); dir != "" && err == nil {
				_ = os.RemoveAll(dir)
			}
		}
		os.Exit(code) //nolint:forbidigo // the end of the test process
	}))
}

// bin returns the folder of the commands, which are built when the first test asks.
func bin(t *testing.T) string {
	t.Helper()
	built.Store(true)
	dir, err := binaries()
	require.NoError(t, err)
	return dir
}

// process is a command that runs until stop.
type process struct {
	cmd    *exec.Cmd
	done   chan error
	stdout *harness.Output
	stderr *harness.Output
}

// launch starts a command and waits until it has printed a text. It ends with the test.
func launch(t *testing.T, cmd *exec.Cmd, until string) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan error, 1), stdout: &harness.Output{}, stderr: &harness.Output{}}
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	require.NoError(t, cmd.Start())
	go func() { p.done <- cmd.Wait() }()
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	require.Eventually(t, func() bool { return strings.Contains(p.stdout.String(), until) }, time.Minute, 10*time.Millisecond,
		"%s\n%s", cmd, p.stderr)
	return p
}

// end sends a signal, unless the process has ended, and waits.
func (p *process) end(sig syscall.Signal) {
	if p.done == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig) // may have ended
	<-p.done
	p.done = nil
}

// command is one of ours, in a folder of the test and without settings of the environment.
func command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), name), args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ONETURN_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// output runs a command to its end.
func output(t *testing.T, cmd *exec.Cmd) (text string, code int) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

var helpTexts sync.Map // of commands, by their names

// helpOf returns the help of a command, which runs once for all tests.
func helpOf(t *testing.T, name string) string {
	t.Helper()
	help, _ := helpTexts.LoadOrStore(name, sync.OnceValue(func() string {
		words := strings.Fields(name)
		text, code := output(t, command(t, "", words[0], append(words[1:], "--help")...))
		require.Zero(t, code, text)
		return text
	}))
	return help.(func() string)() //nolint:forcetypeassert // stored above
}
