//go:build chaos || soak

package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/test/soak"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// Environment of a worker process.
const (
	envURL     = "CHAOS_URL"
	envLedger  = "CHAOS_LEDGER"
	envLog     = "CHAOS_LOG"
	envSamples = "CHAOS_SAMPLES" // file for a sample each few seconds; "" for none
	envSlots   = "CHAOS_SLOTS"
	envSweep   = "CHAOS_SWEEP" // time between two sweeps; 0s for the default
)

const roleWorker = "worker"

func TestMain(m *testing.M) {
	if harness.RunRole(map[string]oneturntest.Role{roleWorker: runWorker}) {
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

var effects = []string{"unsafe", "replay", "keyed", "idempotent", "none"}

// runWorker is a worker that must leave no leak, whatever was broken around it.
func runWorker(ctx context.Context) error {
	before := goleak.IgnoreCurrent()
	if err := consume(ctx); err != nil {
		return err
	}
	return harness.FindLeaks(before)
}

func consume(ctx context.Context) error {
	log, err := os.OpenFile(os.Getenv(envLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	ledger, err := oneturntest.OpenLedger(os.Getenv(envLedger))
	if err != nil {
		return err
	}
	defer ledger.Close()
	slots, err := strconv.Atoi(os.Getenv(envSlots))
	if err != nil {
		return fmt.Errorf("slots: %w", err)
	}
	sweep, err := time.ParseDuration(os.Getenv(envSweep))
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	nc, err := nats.Connect(os.Getenv(envURL), connectOptions()...)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer nc.Close()
	c := oneturn.Config{
		Slots: slots, SoftStop: 10 * time.Second, SweepEvery: sweep, ParkAfter: parkAfter,
		Logger: slog.New(slog.NewTextHandler(log, nil)).With("pid", os.Getpid()),
	}
	for _, effect := range effects {
		c.Tools = append(c.Tools, oneturn.NewTool("work_"+effect, work(ledger), oneturn.ToolOptions{
			Workflow: "Chaos", Agent: "Agent_" + effect, Model: "Work",
			Effect: oneturn.Effect(effect),
		}))
	}
	w, err := oneturn.NewWorker(nc, c)
	if err != nil {
		return err
	}
	sampled := make(chan error, 1)
	sampling, stop := context.WithCancel(ctx)
	go func() { sampled <- sample(sampling, os.Getenv(envSamples)) }()
	if err = w.Run(ctx); err != nil {
		c.Logger.Error("worker failed", "err", err)
	}
	stop()
	if errSample := <-sampled; err == nil {
		err = errSample
	}
	return err
}

// connectOptions are the options of a worker, and pings that find a dead connection in seconds.
func connectOptions() []nats.Option {
	return append(config.ConnOptions("chaos", slog.New(slog.DiscardHandler)),
		nats.CustomReconnectDelay(nil), nats.ReconnectWait(50*time.Millisecond),
		nats.PingInterval(2*time.Second), nats.IgnoreDiscoveredServers(),
	)
}

type input struct {
	Millis int    `json:"millis"`
	Dies   int    `json:"dies"`  // kill the worker in each epoch up to this one
	Stops  bool   `json:"stops"` // stop the worker in the first epoch, until the test continues it
	Pad    string `json:"pad"`
	Asks   bool   `json:"asks,omitempty"` // ask a person
}

// work is the tool: a line in the ledger, some time, a line in the ledger.
func work(ledger *oneturntest.Ledger) func(context.Context, input) (string, error) {
	return func(ctx context.Context, in input) (string, error) {
		call := tool.Info(ctx)
		if err := ledger.Enter(call); err != nil {
			return "", err
		}
		if call.Epoch <= in.Dies {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail
		}
		if call.Epoch == 1 && in.Stops {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // cannot fail
		}
		if in.Asks {
			if err := confirm(ctx, ledger, call); err != nil {
				return "", err
			}
		}
		select {
		case <-time.After(time.Duration(in.Millis) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return "done", ledger.Exit(call)
	}
}

// confirm asks a person.
func confirm(ctx context.Context, ledger *oneturntest.Ledger, call tool.CallInfo) error {
	const only = "1"
	if err := ledger.Ask(call, only); err != nil {
		return err
	}
	if _, err := tool.Ask[string](ctx, tool.Question{Tool: "Confirm"}); err != nil {
		return err
	}
	return ledger.Answered(call, only)
}

// sample writes what the process uses to a file, every few seconds.
func sample(ctx context.Context, file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	defer f.Close()
	tick := time.NewTicker(soak.SampleEvery)
	defer tick.Stop()
	for out := json.NewEncoder(f); ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			s, err := soak.SampleSelf(now)
			if err == nil {
				s.Goroutines = runtime.NumGoroutine()
				err = out.Encode(s)
			}
			if err != nil {
				return fmt.Errorf("samples: %w", err)
			}
		}
	}
}
