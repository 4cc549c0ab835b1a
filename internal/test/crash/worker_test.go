//go:build failpoints

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/test/mutants"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// Environment of a worker process: this test binary, started again.
const (
	envURL       = "CRASH_URL"
	envLedger    = "CRASH_LEDGER"
	envSlots     = "CRASH_SLOTS"
	envWorkflows = "CRASH_WORKFLOWS" // of Python tools; "" for Go tools
	envMetrics   = "CRASH_METRICS"   // file for the counters of a worker that ends by itself
	envLog       = "CRASH_LOG"
	envPark      = "CRASH_PARK"   // how long a tool waits in memory
	envStore     = "CRASH_STORE"  // of a worker that has its server in it
	envListen    = "CRASH_LISTEN" // where that one listens
)

// inTool is the point inside a tool, between its lines in the ledger.
const inTool = "in_tool"

func TestMain(m *testing.M) {
	if kind := os.Getenv(envServe); kind != "" {
		if err := serve(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // the main function of a counterpart
		}
		return
	}
	if url := os.Getenv(envURL); url != "" {
		if err := embeddedOr(workerProcess, url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // the main function of a worker process
		}
		return
	}
	if !mutants.Overlaid {
		fmt.Fprintln(os.Stderr, "built without the failpoints inside the rules: run make crash, or pass -overlay as it does")
		os.Exit(1) //nolint:forbidigo // the tests would wait for points that are not there
	}
	code := m.Run()
	fmt.Fprintln(os.Stdout, page)
	os.Exit(code) //nolint:forbidigo // the end of the test process
}

func workerProcess(url string) error {
	log, err := os.OpenFile(os.Getenv(envLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("pid", os.Getpid())
	nc, err := nats.Connect(url, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { logger.Info("disconnected", "err", err) }),
		nats.ReconnectHandler(func(*nats.Conn) { logger.Info("connected again") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { logger.Info("connection", "err", err) }))
	if err != nil {
		return err
	}
	defer nc.Close()
	slots, err := strconv.Atoi(os.Getenv(envSlots))
	if err != nil {
		return err
	}
	park, err := time.ParseDuration(os.Getenv(envPark))
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	c := oneturn.Config{Slots: slots, SoftStop: 5 * time.Second, Registry: registry, ParkAfter: park, Logger: logger}
	if folder := os.Getenv(envWorkflows); folder != "" {
		c.Workflows, c.Python.Env = folder, []string{envLedger}
	} else {
		ledger, err := oneturntest.OpenLedger(os.Getenv(envLedger))
		if err != nil {
			return err
		}
		defer ledger.Close()
		for _, effect := range effects {
			c.Tools = append(c.Tools, oneturn.NewTool("work_"+effect, work(ledger, effect), oneturn.ToolOptions{
				Workflow: "Crash", Agent: "Agent_" + effect, Model: "Work",
				Effect: oneturn.Effect(effect),
			}),
				oneturn.NewTool("ask_"+effect, ask(ledger, effect), oneturn.ToolOptions{
					Workflow: "Crash", Agent: "Asker_" + effect, Model: "Ask",
					Effect: oneturn.Effect(effect),
				}))
		}
		if err := configure(&c, ledger); err != nil {
			return err
		}
	}
	w, err := oneturn.NewWorker(nc, c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // a worker process
	defer stop()
	return errors.Join(w.Run(ctx), writeCounters(os.Getenv(envMetrics), registry))
}

// writeCounters appends the counters of a worker to a file: a name and a value a line.
func writeCounters(path string, registry prometheus.Gatherer) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if _, err := fmt.Fprintln(f, family.GetName(), int(m.GetCounter().GetValue())); err != nil {
				return err
			}
		}
	}
	return nil
}

type input struct {
	Millis int  `json:"millis"`
	Vars   bool `json:"vars"` // change a context variable
}

// work is the tool: a line in the ledger, some time, a line in the ledger.
func work(ledger *oneturntest.Ledger, effect string) func(context.Context, input) (string, error) {
	return func(ctx context.Context, in input) (string, error) {
		call := tool.Info(ctx)
		if err := ledger.Enter(call); err != nil {
			return "", err
		}
		key := subjects.TurnKey(call.App, call.Chat, call.Run, call.Turn).String()
		failpoint.Hit(inTool, effect, key)
		select {
		case <-time.After(time.Duration(in.Millis) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if in.Vars {
			if err := tool.Vars(ctx).Set("last", call.Turn); err != nil {
				return "", err
			}
		}
		return "done", ledger.Exit(call)
	}
}
