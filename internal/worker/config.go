package worker

// The settings with their defaults, and their forms in the packages below: a setting that is switched off is a
// negative value there.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn/internal/defaults"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/oteltrace"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// Config configures a [Worker]. It has the fields of oneturn.Config, which documents them and which this package
// cannot import; the zero value of each means its default.
type Config struct {
	Workflows string
	Tools     []Tool
	Watch     bool
	Python    Python

	ContextEnv   []string
	ContextFiles string

	Prefix        string
	ReplyPrefixes []string
	Pool          string
	Name          string
	Slots         int

	ToolTimeout     time.Duration
	SoftStop        time.Duration
	BindingGrace    time.Duration
	NoBindingGrace  bool
	Alone           func() bool
	MaxEventAge     time.Duration
	MaxTurnLife     time.Duration
	ParkAfter       time.Duration
	ParkImmediately bool

	CacheBytes int
	NoCache    bool
	SecretKeys []byte
	SweepEvery time.Duration
	NoSweeps   bool
	StoreUse   func() (used, limit int64, err error)

	TracerProvider trace.TracerProvider
	LogCalls       bool
	Logger         *slog.Logger
	Registry       prometheus.Registerer
}

// Python is oneturn.Python.
type Python struct {
	Interpreter string
	Children    int
	Env         []string
	LoadTimeout time.Duration
}

// withDefaults returns a copy of c with every default set, or all errors in it.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Workflows == "" && len(c.Tools) == 0 {
		errs = append(errs, errors.New("nothing to run: set Config.Workflows to a folder of workflows, or Config.Tools"))
	}
	def(&c.Prefix, subjects.DefaultPrefix)
	def(&c.Pool, subjects.DefaultPool)
	def(&c.Slots, defaults.Slots)
	def(&c.ToolTimeout, defaults.ToolTimeout)
	def(&c.SoftStop, defaults.SoftStop)
	def(&c.BindingGrace, defaults.BindingGrace)
	def(&c.MaxEventAge, defaults.MaxEventAge)
	def(&c.MaxTurnLife, defaults.MaxTurnLife)
	def(&c.SweepEvery, defaults.SweepEvery)
	def(&c.ParkAfter, defaults.ParkAfter)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "worker"
		}
		c.Name = host + "-" + strings.ToLower(rand.Text()[:8])
	}
	errs = append(errs, c.checkNumbers())
	if err := subjects.CheckPool(c.Pool); err != nil {
		errs = append(errs, err)
	}
	for _, t := range c.Tools {
		if t.Err != nil {
			errs = append(errs, t.Err)
		}
	}
	return c, errors.Join(errs...)
}

// checkNumbers refuses negative values.
func (c Config) checkNumbers() error {
	var errs []error
	if c.Slots < 0 {
		errs = append(errs, fmt.Errorf("the number of Slots is %d, want at least 1", c.Slots))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"ToolTimeout", c.ToolTimeout},
		{"SoftStop", c.SoftStop},
		{"BindingGrace", c.BindingGrace},
		{"MaxEventAge", c.MaxEventAge},
		{"MaxTurnLife", c.MaxTurnLife},
		{"ParkAfter", c.ParkAfter},
		{"SweepEvery", c.SweepEvery},
		{"Python.LoadTimeout", c.Python.LoadTimeout},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("invalid %s %s: use a positive duration", d.name, d.value))
		}
	}
	if c.CacheBytes < 0 {
		errs = append(errs, fmt.Errorf("invalid CacheBytes %d: set NoCache for no cache", c.CacheBytes))
	}
	return errors.Join(errs...)
}

// keys are the SecretKeys, nil for none.
func (c Config) keys() (*secrets.Keys, error) {
	if len(c.SecretKeys) == 0 {
		return nil, nil //nolint:nilnil // no text has no keys
	}
	keys, err := secrets.Parse(c.SecretKeys)
	if err != nil {
		return nil, fmt.Errorf("SecretKeys: %w", err)
	}
	return keys, nil
}

// tracer reports the phases of calls, nil if none are to be reported.
func (c Config) tracer() engine.Tracer {
	var list []engine.Tracer
	if c.LogCalls {
		list = append(list, engine.LogTracer(c.Logger))
	}
	if c.TracerProvider != nil {
		list = append(list, oteltrace.New(c.TracerProvider, false))
	}
	return engine.Tracers(list...)
}

// parkAfter, bindingGrace and cacheBytes are the settings as packages handlers and engine have them, where a
// negative value means none.
func (c Config) parkAfter() time.Duration {
	if c.ParkImmediately {
		return -1
	}
	return c.ParkAfter
}

func (c Config) bindingGrace() time.Duration {
	if c.NoBindingGrace {
		return -1
	}
	return c.BindingGrace
}

func (c Config) cacheBytes() int {
	if c.NoCache {
		return -1
	}
	return c.CacheBytes
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
