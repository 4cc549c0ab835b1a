//go:build released

// It builds two workers, which takes longer than all other tests of the package: `make mutants`
// runs it.

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/test/mutants"
)

// build makes the worker as `make build` does, with more flags. The content is of the gateway too, which has the other packages that
// faults are planted in.
func build(t *testing.T, flags ...string) (path string, content []byte) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "worker")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "go", append(append([]string{"build", "-trimpath"}, flags...), "-o", dir, ".", "../gateway")...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, binary := range []string{"worker", "gateway"} {
		data, err := os.ReadFile(filepath.Join(dir, binary))
		require.NoError(t, err)
		content = append(content, data...)
	}
	return path, content
}

// planted are the names of what tests plant, unless they are ordinary words.
func planted() (points, faults []string) {
	points = []string{
		"ONETURN_FAILPOINTS", "ONETURN_FAILPOINT_LOG",
		failpoint.BeforeClaim, failpoint.AfterClaim, failpoint.AfterTool, failpoint.AfterDelta, failpoint.AfterMerge,
		failpoint.AfterFinish, failpoint.AfterAck, failpoint.AfterSeal, failpoint.AfterTakeover,
		failpoint.BeforeAsk, failpoint.AfterAsk, failpoint.BeforePark, failpoint.BeforeContinue, failpoint.AfterPark, failpoint.AfterAnswer,
		failpoint.AfterWake, failpoint.AfterResume, failpoint.BeforeTaken, failpoint.AfterTaken,
	}
	faults = []string{mutants.Variable}
	for _, f := range mutants.All() {
		faults = append(faults, f.Name)
	}
	return points, faults
}

// dies reports whether a worker of the binary kills itself at a failpoint of its first turn.
func dies(t *testing.T, worker string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, worker, "--workflows", "../../examples/01-hello/workflows", "--listen", "127.0.0.1:0",
		"--store", t.TempDir(), "--http", "off", "-o", "json")
	c.Env = append(os.Environ(), "ONETURN_FAILPOINTS=before_claim=kill@1", "ONETURN_FAILPOINT_LOG="+filepath.Join(t.TempDir(), "log"),
		mutants.Variable+"=no_intent")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	done := make(chan error, 1)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	go func() { done <- c.Wait() }()
	var start struct {
		NATS string `json:"nats"`
	}
	require.NoError(t, json.Unmarshal(line, &start))
	nc, err := nats.Connect(start.NATS, nats.MaxReconnects(0))
	require.NoError(t, err)
	defer nc.Close()
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	turn := &oneturn.Turn{
		TurnID: oneturn.TurnID{Chat: "c", Turn: "t"}, Workflow: "Hello", Agent: "Greeter", Model: "Greeting",
		Data: map[string]any{"name": "Ada", "language": "en"},
	}
	ended := make(chan error, 1)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, err := client.Do(waiting, turn)
		ended <- err
	}()
	select {
	case <-done:
		stop()
		<-ended
		return true
	case err := <-ended:
		if err != nil { // its server has died with it, or will not answer
			select {
			case <-done:
				return true
			case <-ctx.Done():
				require.NoError(t, err)
			}
		}
	}
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-done)
	return false
}

func TestReleasedWorkerHasNoFailpointsAndNoMutants(t *testing.T) {
	t.Parallel()
	worker, content := build(t)
	points, faults := planted()
	for _, name := range append(points, faults...) {
		require.False(t, bytes.Contains(content, []byte(name)), "%s is in the released worker", name)
	}
	require.False(t, dies(t, worker))
}

// TestWorkerOfTheTestsHasFailpointsAndMutants shows that the test above can fail.
func TestWorkerOfTheTestsHasFailpointsAndMutants(t *testing.T) {
	t.Parallel()
	overlay, err := mutants.Write("../..", t.TempDir(), mutants.All(), mutants.Points())
	require.NoError(t, err)
	worker, content := build(t, "-tags=failpoints,mutants", "-overlay="+overlay)
	points, faults := planted()
	var missing []string
	for _, name := range append(points, faults...) {
		if !bytes.Contains(content, []byte(name)) {
			missing = append(missing, name)
		}
	}
	require.Empty(t, strings.Join(missing, " "))
	require.True(t, dies(t, worker))
}
