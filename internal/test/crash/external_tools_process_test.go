//go:build failpoints

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// Environment of a counterpart: a process with the tools that workers call.
const (
	envServe  = "CRASH_SERVE"        // kind of its door, see serve
	envFolder = "CRASH_SERVE_FOLDER" // with the ledger, the strikes, and the file that names the worker
	envDoor   = "CRASH_SERVE_DOOR"   // address or URL
)

// Files in the folder of a rig.
const (
	fileLedger  = "ledger"
	fileStrikes = "strikes"
	fileWorker  = "worker" // process id of the worker that may be killed
)

// job is the arguments of the tools outside. The turn is among them: not every kind passes it.
type job struct {
	Millis    int    `json:"millis"`
	Questions int    `json:"questions"`
	Chat      string `json:"chat"`
	Turn      string `json:"turn"`
	Strike    string `json:"strike"` // effect: the worker is killed when its first run is entered
}

// counterpart is the side of the tools.
type counterpart struct {
	folder string
	ledger *oneturntest.Ledger
}

// serve is the main function of a counterpart.
func serve(kind string) error {
	folder := os.Getenv(envFolder)
	ledger, err := oneturntest.OpenLedger(folder + "/" + fileLedger)
	if err != nil {
		return err
	}
	defer ledger.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // a separate process
	defer stop()
	c := &counterpart{folder, ledger}
	switch kind {
	case kindNATS:
		return c.serveNATS(ctx, os.Getenv(envDoor))
	case kindHTTP, kindAgent:
		return c.serveHTTP(ctx, os.Getenv(envDoor))
	case kindMCP:
		return c.serveStdio(ctx)
	case kindMCPHTTP:
		return c.serveMCP(ctx, os.Getenv(envDoor))
	default:
		return fmt.Errorf("no counterpart of kind %q", kind)
	}
}

// parse reads a job, and the call that it belongs to by what its kind passes of that.
func parse(args []byte, key, token, epoch string) (job, tool.CallInfo, error) {
	var j job
	if err := json.Unmarshal(args, &j); err != nil {
		return j, tool.CallInfo{}, err
	}
	call := tool.CallInfo{App: "app", Chat: j.Chat, Turn: j.Turn, IdempotencyKey: key}
	var errs [2]error
	call.FencingToken, errs[0] = strconv.ParseUint(token, 10, 64)
	call.Epoch, errs[1] = strconv.Atoi(epoch)
	return j, call, errors.Join(errs[:]...)
}

// result of every tool outside.
const result = `{"done":true}`

// work is the tool: a line in the ledger, some time, a line in the ledger. ask asks a question of
// this name and waits for what is answered; it is nil where the kind cannot ask.
func (c *counterpart) work(ctx context.Context, j job, call tool.CallInfo, ask func(ctx context.Context, name string) error) error {
	if err := c.ledger.Enter(call); err != nil {
		return err
	}
	if j.Strike != "" && call.Epoch == 1 {
		c.strike(j)
	}
	for n := range j.Questions {
		name := questionName(n)
		if err := c.ledger.Ask(call, name); err != nil {
			return err
		}
		if err := ask(ctx, name); err != nil {
			return err
		}
		if err := c.ledger.Answered(call, name); err != nil {
			return err
		}
	}
	t := time.NewTimer(time.Duration(j.Millis) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.ledger.Exit(call)
}

// questionName is the name of the n-th question: one that is a number is escaped.
func questionName(n int) string { return "question-" + strconv.Itoa(n+1) }

// strike kills the worker, if there is one that may be killed, and notes it as a failpoint does.
func (c *counterpart) strike(j job) {
	data, err := os.ReadFile(c.folder + "/" + fileWorker)
	if err != nil {
		return // the clean worker that ends the rest
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		return
	}
	f, err := os.OpenFile(c.folder+"/"+fileStrikes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s %s %d\n", inTool, j.Strike, subjects.TurnKey("app", j.Chat, "", j.Turn), pid)
}
