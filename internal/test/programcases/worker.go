package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/tool"
)

// Environment of a worker process, which is this program started again.
const (
	envFolder = "PROGRAMCASES_FOLDER" // of the case; set: the process is a worker
	envURL    = "PROGRAMCASES_URL"    // of the server
)

// Files in the folder of a case.
const (
	fileCase      = "case.json"
	fileLedger    = "ledger"
	fileLog       = "log"     // of the workers, JSON lines
	fileMetrics   = "metrics" // of workers that ended by themselves
	fileStrikes   = "strikes" // of failpoints
	folderOfFlows = "workflows"
)

// parkAfter is how long a tool waits for an answer before its turn is parked.
const parkAfter = 200 * time.Millisecond

// works runs the worker of a case until ctx ends, or stdin does, which belongs to the runner.
func works(ctx context.Context, folder, url string, stdin io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	cases, err := load([]string{filepath.Join(folder, fileCase)})
	if err != nil {
		return err
	}
	ledger, err := openLedger(filepath.Join(folder, fileLedger))
	if err != nil {
		return err
	}
	defer ledger.Close()
	log, err := os.OpenFile(filepath.Join(folder, fileLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer log.Close()
	nc, err := nats.Connect(url, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer nc.Close()
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	w, err := oneturn.NewWorker(nc, oneturn.Config{
		Workflows: filepath.Join(folder, folderOfFlows), Watch: true, Tools: cases[0].goTools(ledger, folder, client),
		ParkAfter: parkAfter, SoftStop: 3 * time.Second, Registry: registry, LogCalls: true, NoBindingGrace: true,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return err
	}
	return errors.Join(w.Run(ctx), writeMetrics(filepath.Join(folder, fileMetrics), registry))
}

// untyped is the result of the tools. It contains itself, so it has no JSON Schema, and a tool has the schemas of
// its manifest only.
type untyped struct {
	data json.RawMessage
	None *untyped
}

// MarshalJSON implements [json.Marshaler].
func (u untyped) MarshalJSON() ([]byte, error) { return u.data, nil } //nolint:unparam // of the interface

// goTools returns the tools of a case that are Go functions.
func (c *Case) goTools(ledger *Ledger, folder string, client *oneturn.Client) (list []oneturn.Tool) {
	for _, name := range c.toolNames() {
		t := c.Tools[name]
		if t.Behaviour.Do == "builtin" || t.onMCP() {
			continue
		}
		list = append(list, oneturn.NewTool(name, func(ctx context.Context, args json.RawMessage) (untyped, error) {
			info := tool.Info(ctx)
			n, left, err := ledger.enter(ledgerLine{
				Tool: name, Call: info.CallID, Args: args, Key: info.IdempotencyKey, Token: info.FencingToken, Epoch: info.Epoch, Attempt: info.Attempt,
			})
			if err != nil {
				return untyped{}, err
			}
			defer func() { left(ctx.Err() != nil) }()
			if err := c.strike(ctx, folder, &info); err != nil {
				return untyped{}, err
			}
			data, err := t.Behaviour.run(ctx, &entered{args: args, n: n, client: client})
			return untyped{data: data}, err
		}, oneturn.ToolOptions{}))
	}
	return list
}

// strike kills the process in the tool that a fault of the case names, once what it waits for has happened.
func (c *Case) strike(ctx context.Context, folder string, info *tool.CallInfo) error {
	for i, f := range c.Faults {
		if f.At != "in_tool" || f.Call != callOf(info.CallID, info.Turn) || f.Epoch != 0 && f.Epoch != info.Epoch {
			continue
		}
		if f.After != nil {
			if err := untilExists(ctx, faultFile(folder, i)); err != nil {
				return err
			}
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal ends every thread
	}
	return nil
}

// faultFile is created by the runner when what fault i waits for has happened.
func faultFile(folder string, i int) string { return filepath.Join(folder, fmt.Sprintf("fault-%d", i)) }

// untilExists waits for a file.
func untilExists(ctx context.Context, path string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// callOf returns the id of a call in its program, by its tool_call_id and its turn: "" for the turn.
func callOf(id, turn string) string { return strings.TrimPrefix(strings.TrimPrefix(id, turn), "#") }

// writeMetrics appends the metrics of a worker to a file, one sample a line: name{label="value"} number.
func writeMetrics(path string, from prometheus.Gatherer) error {
	families, err := from.Gather()
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	var out strings.Builder
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			fmt.Fprintf(&out, "%s{%s} %v\n", family.GetName(), strings.Join(labels, ","), value)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	_, err = f.WriteString(out.String())
	return errors.Join(err, f.Close())
}
