package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/cmd/internal/probes"
	"github.com/oneturn/oneturn/cmd/internal/traces"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// Everything that can be refused without a server is checked first: the folder, the interpreter, the address, the
// keys. Then the parts are started in order and stopped in reverse by defer. The start is printed once the worker
// consumes, so that a script that reads it can publish.

// clientName is the name of the connection on the server.
const clientName = "oneturn-worker"

// serve runs a worker until ctx ends or a permanent failure.
func serve(ctx context.Context, cfg *config.Worker, env cli.Lookup, stdout, stderr io.Writer) (err error) {
	logger := cfg.Logger(stderr)
	if err := cli.CheckFolder(cfg.Workflows); err != nil {
		return cli.Usagef("--workflows: %w", err)
	}
	if err := checkPython(ctx, cfg); err != nil {
		return err
	}
	web, err := probes.Listen("worker", cfg.HTTP)
	if err != nil {
		return err
	}
	defer web.Close()
	keys, err := namedKeys(cfg)
	if err != nil {
		return err
	}
	spans := traces.New(ctx, clientName, env, logger)
	defer spans.Close()
	link, err := connect(ctx, cfg, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.close()) }()

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c := workerConfig(cfg, logger, registry)
	c.TracerProvider = spans.Provider()
	if link.server != nil {
		c.StoreUse, c.Alone = link.server.StoreUse, link.alone()
	}
	if c.SecretKeys = keys; keys == nil && link.server != nil {
		if c.SecretKeys, err = secrets.LoadOrMake(filepath.Join(cfg.Store, keyFile)); err != nil {
			return err
		}
	}
	w, err := oneturn.NewWorker(link.nc, c)
	if err != nil {
		return err
	}
	web.Serve(w, registry, logger)
	if len(w.Bindings().Bindings()) == 0 {
		logger.Warn("no tool is bound: turns of these workflows end as no_binding: run turnctl check DIR", "workflows", cfg.Workflows)
	}
	return runUntilDone(ctx, w, logger, func() error { return newStart(cfg, w, link, web, spans).write(cfg.Format, stdout) })
}

// keyFile is the name of the key file in the store of the embedded server.
const keyFile = "secret-keys"

// namedKeys reads the key file of --secret-keys before anything is started; nil without one.
func namedKeys(cfg *config.Worker) ([]byte, error) {
	if cfg.SecretKeys == "" {
		return nil, nil
	}
	keys, err := secrets.Load(cfg.SecretKeys)
	if err != nil {
		return nil, cli.Usagef("--secret-keys: %w", err)
	}
	return keys, nil
}

// checkPython refuses an interpreter of --python that does not run: every turn of a Python tool would fail. The
// default interpreter is only searched for if a workflow needs it.
func checkPython(ctx context.Context, cfg *config.Worker) error {
	if cfg.Python == "" {
		return nil
	}
	if err := python.Probe(ctx, cfg.Python, cfg.Workflows); err != nil {
		return cli.Usagef("--python: %w: name a Python interpreter of version 3.9 or newer", err)
	}
	return nil
}

// workerConfig converts the settings to the configuration of the library, where zero means the default.
func workerConfig(cfg *config.Worker, logger *slog.Logger, registry prometheus.Registerer) oneturn.Config {
	c := oneturn.Config{
		Workflows: cfg.Workflows, Watch: cfg.Watch,
		Python:     oneturn.Python{Interpreter: cfg.Python, Children: cfg.PythonPool, Env: cfg.ToolEnv, LoadTimeout: cfg.LoadTimeout},
		ContextEnv: cfg.ContextEnv, ContextFiles: cfg.ContextFiles,
		Prefix: cfg.Prefix, ReplyPrefixes: cfg.ReplyPrefixes, Pool: cfg.Pool, Slots: cfg.Slots,
		ToolTimeout: cfg.ToolTimeout, SoftStop: cfg.SoftStop, BindingGrace: cfg.BindingGrace,
		MaxEventAge: cfg.MaxEventAge, MaxTurnLife: cfg.MaxTurnLife, SweepEvery: cfg.SweepEvery,
		Logger: logger, Registry: registry,
	}
	c.LogCalls = logger.Enabled(context.Background(), slog.LevelDebug)
	c.ParkAfter, c.CacheBytes = cfg.ParkAfter, int(cfg.CacheSize)
	c.NoBindingGrace, c.ParkImmediately, c.NoCache, c.NoSweeps = c.BindingGrace == 0, c.ParkAfter == 0, c.CacheBytes == 0, c.SweepEvery == 0
	if c.SoftStop == 0 {
		c.SoftStop = time.Nanosecond
	}
	return c
}

// pollReady is the interval at which a starting worker is checked until it consumes.
const pollReady = 10 * time.Millisecond

// runUntilDone runs the worker and calls ready once, when it consumes.
func runUntilDone(ctx context.Context, w *oneturn.Worker, logger *slog.Logger, ready func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	tick := time.NewTicker(pollReady)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		if w.Ready() != nil {
			continue
		}
		if err := ready(); err != nil {
			cancel()
			return errors.Join(fmt.Errorf("print the start: %w", err), <-done)
		}
		break
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	logger.Info("stopping: a second SIGINT or SIGTERM ends the worker immediately")
	return <-done
}
