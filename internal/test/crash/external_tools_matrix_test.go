//go:build failpoints

package crash_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
)

// Kinds of tools that are in other processes, by their doors.
const (
	kindNATS    = "nats"
	kindHTTP    = "http"
	kindAgent   = "agent"
	kindMCP     = "mcp" // on stdio: a child of the worker
	kindMCPHTTP = "mcp_http"
)

func outsideKinds() []string {
	return []string{kindNATS, kindHTTP, kindAgent, kindMCP, kindMCPHTTP}
}

// outside is what a rig has whose tools are in another process.
type outside struct {
	kind    string
	door    string // address or URL
	strike  bool   // tools kill the worker when they are entered
	mayFail bool   // turns end otherwise than with a result
}

// outsideEffects are those that differ: whether a tool may be entered again, and whether its key counts.
func outsideEffects() []string { return []string{"unsafe", "keyed", "idempotent"} }

// outsideCells are the points before, in and after a call of a tool that changes no context.
func outsideCells() []cell {
	var out []cell
	for _, c := range cells() {
		if c.vars {
			continue
		}
		c.effects = outsideEffects()
		if c.first != "" {
			c.first, c.effects = failpoint.AfterClaim, c.effects[1:] // as for Python
		}
		if *others <= 1 && c.point != inTool && c.point != failpoint.AfterTool {
			continue
		}
		out = append(out, c)
	}
	return out
}

// F01: TestMatrixOfToolsInOtherProcesses kills the only worker at every point before, in and after a call
// while the tool, which keeps the ledger, lives on in a separate process.
func TestMatrixOfToolsInOtherProcesses(t *testing.T) {
	t.Parallel()
	for _, kind := range outsideKinds() {
		for _, c := range outsideCells() {
			t.Run(kind+"/"+c.point, func(t *testing.T) {
				t.Parallel()
				r := newRig(t).callsOutside(kind, "")
				r.outside.strike = c.point == inTool
				r.kill(c, *others, 1)
				r.settleOutside()
			})
		}
	}
}

// callsOutside has the workers of a rig call tools of a kind in a separate process. lines are
// added to each tool's entry in the manifest.
func (r *rig) callsOutside(kind, lines string) *rig {
	r.t.Helper()
	r.outside = &outside{kind: kind}
	self, err := os.Executable()
	require.NoError(r.t, err)
	if kind != kindMCP { // which workers start
		r.startCounterpart()
	}
	at := map[string]string{
		kindNATS:    "nats: {subject: crash.work}",
		kindHTTP:    fmt.Sprintf("http: {url: http://%s/work, allow_http: true, allow_private: [127.0.0.0/8]}", r.outside.door),
		kindAgent:   fmt.Sprintf("completion: {url: http://%s/v1/chat/completions, model: m, allow_http: true, allow_private: [127.0.0.0/8]}", r.outside.door),
		kindMCP:     "mcp: {server: crash, tool: work}",
		kindMCPHTTP: "mcp: {server: web, tool: work}",
	}[kind]
	var m strings.Builder
	// The ledger's name among the variables makes a server that outlives its worker an orphan.
	fmt.Fprintf(&m, "servers:\n  crash: {command: [%q], sessions: 4, env: {%s: %s, %s: %q, %s: %q}}\n  web: {url: http://%s/, allow_http: true, allow_private: [127.0.0.0/8]}\n",
		self, envServe, kindMCP, envFolder, r.dir, envLedger, r.ledger(), cmp.Or(r.outside.door, "127.0.0.1:1"))
	m.WriteString("agents:\n")
	for _, e := range effects {
		fmt.Fprintf(&m, "  Agent_%s: {model: Work}\n  Asker_%s: {model: Work}\n", e, e)
	}
	m.WriteString("models:\n  Work:\n    type: object\n    properties:\n")
	for _, field := range []string{"millis: {type: integer}", "questions: {type: integer}", "chat: {type: string}", "turn: {type: string}", "strike: {type: string}"} {
		fmt.Fprintf(&m, "      %s\n", field)
	}
	m.WriteString("tools:\n")
	for _, e := range effects {
		for _, agent := range []string{"Agent", "Asker"} {
			fmt.Fprintf(&m, "  - {name: %s_%s, agent: %s_%s, effect: %s, %s%s}\n", strings.ToLower(agent), e, agent, e, e, at, lines)
		}
	}
	r.workflows = r.t.TempDir()
	dir := filepath.Join(r.workflows, "Crash")
	require.NoError(r.t, os.MkdirAll(dir, 0o700))
	require.NoError(r.t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), []byte(m.String()), 0o600))
	return r
}

// startCounterpart starts it and waits until it can be called.
func (r *rig) startCounterpart() {
	r.t.Helper()
	self, err := os.Executable()
	require.NoError(r.t, err)
	door := cmp.Or(r.outside.door, "127.0.0.1:0")
	if r.outside.kind == kindNATS {
		door = r.server.URL()
	}
	c := exec.CommandContext(context.WithoutCancel(r.t.Context()), self)
	c.Env = append(os.Environ(), envServe+"="+r.outside.kind, envFolder+"="+r.dir, envDoor+"="+door)
	c.Stderr = os.Stderr
	address := filepath.Join(r.dir, "address")
	_ = os.Remove(address)
	require.NoError(r.t, c.Start())
	done := make(chan struct{})
	go func() {
		_ = c.Wait() // killed, by the test or at its end
		close(done)
	}()
	r.t.Cleanup(func() {
		_ = c.Process.Kill() // may have ended
		<-done
	})
	if r.outside.kind == kindNATS {
		nc := r.server.Connect()
		require.Eventually(r.t, func() bool { return responds(r.t.Context(), nc) }, deadline, 10*time.Millisecond, "the service does not start")
		return
	}
	require.Eventually(r.t, func() bool {
		data, err := os.ReadFile(address)
		r.outside.door = string(data)
		return err == nil && len(data) > 0
	}, deadline, 5*time.Millisecond, "the server does not start")
}

// responds reports whether the service is there.
func responds(ctx context.Context, nc *nats.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := nc.RequestWithContext(ctx, "$SRV.PING.crash", nil)
	return err == nil
}

// data is the data of a turn that calls outside.
func (o *outside) data(r *rig, chat, turn, effect string, millis int) map[string]any {
	d := map[string]any{"millis": json.Number(strconv.Itoa(millis)), "questions": json.Number("0"), "chat": chat, "turn": turn, "strike": ""}
	if o.strike {
		d["strike"] = effect
	}
	if r.asks != nil {
		d["questions"] = json.Number(strconv.Itoa(r.asks.questions))
	}
	return d
}

// mortal names the worker that tools may kill; "" none.
func (r *rig) mortal(pid string) {
	r.t.Helper()
	file := filepath.Join(r.dir, fileWorker)
	_ = os.Remove(file)
	if pid != "" {
		require.NoError(r.t, os.WriteFile(file, []byte(pid), 0o600))
	}
}

// settleOutside is settle once no worker may be killed any more.
func (r *rig) settleOutside() *oneturntest.Facts {
	r.t.Helper()
	r.outside.strike = false
	r.mortal("")
	facts := r.settle()
	require.NotEmpty(r.t, facts.Ledger)
	require.False(r.t, slices.ContainsFunc(facts.Ledger, func(e oneturntest.LedgerEntry) bool { return e.Key == "" }), "a tool did not get its key")
	return facts
}
