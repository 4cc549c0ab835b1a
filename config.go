package oneturn

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/worker"
)

// Config configures a [Worker]. The zero value of each field means its default. At least one
// of Workflows and Tools is required.
type Config struct {
	// Workflows is the folder of workflow folders, MozaiksAI's or our own (oneturn.yaml).
	Workflows string
	// Tools are Go functions, see [NewTool].
	Tools []Tool
	// Watch takes over changes of the workflow folder while the worker runs.
	Watch bool
	// Python says how Python tools run.
	Python Python

	// Prefix of all names on NATS. Defaults to "oneturn".
	Prefix string
	// ReplyPrefixes are what reply subjects of requests, of answers and of services that are tools
	// begin with; a worker replies to nothing else. Each may be followed by "_" and a name. Defaults
	// to "_INBOX".
	ReplyPrefixes []string
	// Pool is the pool of turns that the worker takes part in. Defaults to "default".
	Pool string
	// Name of the worker in records and logs. Defaults to the host name and a random part.
	Name string
	// Slots is how many turns run at the same time. Defaults to 256. Tools that wait (for
	// HTTP, for a person) want more, tools that compute want about the number of cores.
	Slots int

	// ToolTimeout bounds one attempt of a tool that names no timeout of its own. An attempt
	// that runs out of time is an unknown outcome and is never retried. Defaults to 1 min.
	ToolTimeout time.Duration
	// SoftStop is how long running tools may go on once Run's context has ended; then their
	// context ends too. Keep it below the grace period of whatever stops the process.
	// Defaults to 25 s.
	SoftStop time.Duration
	// BindingGrace is how long a turn of a workflow unknown here waits for a worker that
	// knows it (rolling deploys); then it ends as no_binding. Defaults to 30 s; a negative
	// value means not at all.
	BindingGrace time.Duration
	// Alone reports whether no other worker is there, as the owner of the server may know: then a
	// turn of an unknown workflow waits for 2 s instead, the time in which a saved folder is loaded.
	// Defaults to not knowing.
	Alone func() bool
	// MaxEventAge is how old an event may be and still run; older ones end as too_old.
	// Defaults to 24 h.
	MaxEventAge time.Duration
	// MaxTurnLife is how long a turn may take, from its claim. The worker refuses to start on
	// a journal that keeps turns for less than MaxTurnLife + MaxEventAge + 1 h: a late
	// duplicate would run again. Defaults to 7 days.
	MaxTurnLife time.Duration

	// ParkAfter is how long a tool that asks people waits in memory for the answer. Then its turn
	// is parked: it costs the worker nothing, and the answer runs the tool again, on any worker.
	// A tool whose effect is unsafe is never parked. Defaults to 10 s; a negative value means at
	// once.
	ParkAfter time.Duration

	// CacheBytes bounds the results that this worker keeps for other calls with the same arguments,
	// of tools that have a cache. Defaults to 64 MiB; a negative value keeps none.
	CacheBytes int

	// SecretKeys seal the answers to secret questions; all workers of a pool need the same. Without
	// them a tool that asks a secret question fails. Defaults to none.
	SecretKeys *secrets.Keys

	// SweepEvery is how long after one sweep the next is due: it finds turns whose message is
	// gone, and turns past their life, and has them ended. One worker of all sweeps at a time.
	// Defaults to 5 min; a negative value means that this worker takes no part.
	SweepEvery time.Duration

	// StoreUse returns how many bytes the server stores and may store; a limit of -1 is none.
	// From 85 % on the worker takes no new turns, so that open ones can end. Defaults to asking
	// the server for the use and the limit of the account; a server of one's own process
	// knows the disk besides (embedded.Server.StoreUse).
	StoreUse func() (used, limit int64, err error)

	// Tracer is told of the phases of every call: see [engine.LogTracer] and package
	// engine/oteltrace. Defaults to none, which costs nothing.
	Tracer engine.Tracer
	// Logger gets ids and sizes, never payloads: when the worker is ready and when it drains, for one.
	// Defaults to [slog.Default]; slog.New(slog.DiscardHandler) drops everything.
	Logger *slog.Logger
	// Registry gets the metrics. Defaults to a registry of the worker's own.
	Registry prometheus.Registerer
}

// Python says how Python tools run.
type Python struct {
	// Interpreter to use. Defaults to the workflow's .venv, the folder's .venv, $VIRTUAL_ENV,
	// then python3.
	Interpreter string
	// Children is how many processes a workflow may have. Defaults to 4.
	Children int
	// Env names the variables of the worker's environment that tools see, besides PATH, HOME
	// and the like: names, or prefixes that end with a star. Defaults to none.
	Env []string
	// LoadTimeout is how long a process may take to get ready, and then until it enters a
	// function: its import, for the most part. Defaults to 1 min.
	LoadTimeout time.Duration
}

// internal is c as package worker takes it.
func (c *Config) internal() worker.Config {
	tools := make([]worker.Tool, len(c.Tools))
	for i := range c.Tools {
		tools[i] = c.Tools[i].tool
	}
	return worker.Config{
		Workflows: c.Workflows, Tools: tools, Watch: c.Watch, Python: worker.Python(c.Python),
		Prefix: c.Prefix, ReplyPrefixes: c.ReplyPrefixes, Pool: c.Pool, Name: c.Name, Slots: c.Slots,
		ToolTimeout: c.ToolTimeout, SoftStop: c.SoftStop, BindingGrace: c.BindingGrace, Alone: c.Alone,
		MaxEventAge: c.MaxEventAge, MaxTurnLife: c.MaxTurnLife, ParkAfter: c.ParkAfter,
		CacheBytes: c.CacheBytes, SecretKeys: c.SecretKeys, SweepEvery: c.SweepEvery, StoreUse: c.StoreUse,
		Tracer: c.Tracer, Logger: c.Logger, Registry: c.Registry,
	}
}
