package oneturn

// The settings of a worker. Package internal/worker applies the defaults and checks the values; a test sets
// each field and finds it there.

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn/internal/worker"
)

// Config configures a [Worker]. The zero value of each field means its default. At least one
// of Workflows and Tools is required.
type Config struct {
	// Workflows is the folder of workflow folders, MozaiksAI's or our own (oneturn.yaml).
	Workflows string
	// Tools are Go functions, see [NewTool].
	Tools []Tool
	// Watch applies changes of the workflow folder while the worker runs.
	Watch bool
	// Python configures how Python tools run.
	Python Python

	// ContextEnv names the environment variables that manifests may read as values of context variables: names, or
	// prefixes that end with a star. Defaults to none.
	ContextEnv []string
	// ContextFiles is the folder that the files of context variables must be in. Defaults to the folder that holds
	// Workflows.
	ContextFiles string

	// Prefix of all names on NATS. Defaults to "oneturn".
	Prefix string
	// ReplyPrefixes are the allowed beginnings of reply subjects: of requests, of answers and of services that
	// are tools. Each may be followed by "_" and a name. Defaults to "_INBOX".
	ReplyPrefixes []string
	// Pool is the pool of turns that the worker takes part in. Defaults to "default".
	Pool string
	// Name of the worker in records and logs. Defaults to the host name and a random part.
	Name string
	// Slots is how many turns run at the same time. Defaults to 256. Tools that wait (for
	// HTTP, for a person) want more, tools that compute want about the number of cores.
	Slots int

	// ToolTimeout bounds one attempt of a tool that has no timeout. An attempt that exceeds it has an unknown
	// outcome and is never retried. Defaults to 1 min.
	ToolTimeout time.Duration
	// SoftStop is how long running tools may continue once Run's context has ended; then their
	// context ends too. Keep it below the grace period of whatever stops the process.
	// Defaults to 25 s.
	SoftStop time.Duration
	// BindingGrace is how long a turn of a workflow unknown here waits for a worker that
	// knows it (rolling deploys); then it ends as no_binding. Defaults to 30 s.
	BindingGrace time.Duration
	// NoBindingGrace ends such turns immediately.
	NoBindingGrace bool
	// Alone reports whether no other worker runs, as the owner of the server may know: then a
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
	// A tool whose effect is unsafe is never parked. Defaults to 10 s.
	ParkAfter time.Duration
	// ParkImmediately parks as soon as a question is asked.
	ParkImmediately bool

	// CacheBytes bounds the results that this worker keeps for other calls with the same arguments,
	// of tools that have a cache. Defaults to 64 MiB.
	CacheBytes int
	// NoCache keeps no results.
	NoCache bool

	// SecretKeys is the text of a key file, as `turnctl secret-key` writes it: one key per line, in base64. The
	// keys seal the answers to secret questions; all workers of a pool need the same. Without them a tool that
	// asks a secret question fails. Defaults to none.
	SecretKeys []byte

	// SweepEvery is the time between two sweeps: a sweep finds turns whose message is gone, and turns past their
	// life, and has them ended. One worker of all sweeps at a time. Defaults to 5 min.
	SweepEvery time.Duration
	// NoSweeps means that this worker takes no part in sweeps.
	NoSweeps bool

	// StoreUse returns how many bytes the server stores and may store; a limit of 0 or less means no limit.
	// From 85 % on the worker takes no new turns, so that open ones can end. Defaults to requesting the use and
	// the limit of the account from the server; embedded.Server.StoreUse knows the disk as well.
	StoreUse func() (used, limit int64, err error)

	// TracerProvider makes an OpenTelemetry span for every call of a tool, without texts of tools. Defaults to
	// none, which costs nothing.
	TracerProvider trace.TracerProvider
	// LogCalls logs the phases of every call at level debug.
	LogCalls bool
	// Logger gets ids and sizes, never payloads. Defaults to [slog.Default]; slog.New(slog.DiscardHandler) drops
	// everything.
	Logger *slog.Logger
	// Registry gets the metrics. Defaults to a private registry.
	Registry prometheus.Registerer
}

// Python configures how Python tools run.
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
	// function: mostly its import. Defaults to 1 min.
	LoadTimeout time.Duration
}

// internal is c as package worker takes it. The fields are listed there again, because this package imports it and
// not the other way round, and users should find the settings and their comments here.
func (c *Config) internal() worker.Config {
	tools := make([]worker.Tool, len(c.Tools))
	for i := range c.Tools {
		tools[i] = c.Tools[i].tool
	}
	return worker.Config{
		Workflows: c.Workflows, Tools: tools, Watch: c.Watch, Python: worker.Python(c.Python),
		ContextEnv: c.ContextEnv, ContextFiles: c.ContextFiles,
		Prefix: c.Prefix, ReplyPrefixes: c.ReplyPrefixes, Pool: c.Pool, Name: c.Name, Slots: c.Slots,
		ToolTimeout: c.ToolTimeout, SoftStop: c.SoftStop, BindingGrace: c.BindingGrace, NoBindingGrace: c.NoBindingGrace,
		Alone: c.Alone, MaxEventAge: c.MaxEventAge, MaxTurnLife: c.MaxTurnLife,
		ParkAfter: c.ParkAfter, ParkImmediately: c.ParkImmediately, CacheBytes: c.CacheBytes, NoCache: c.NoCache,
		SecretKeys: c.SecretKeys, SweepEvery: c.SweepEvery, NoSweeps: c.NoSweeps, StoreUse: c.StoreUse,
		TracerProvider: c.TracerProvider, LogCalls: c.LogCalls, Logger: c.Logger, Registry: c.Registry,
	}
}
