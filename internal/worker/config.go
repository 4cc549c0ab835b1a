package worker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// Defaults of [Config].
const (
	defaultSlots        = 256
	defaultSoftStop     = 25 * time.Second
	defaultToolTimeout  = time.Minute
	defaultBindingGrace = 30 * time.Second
	defaultMaxEventAge  = 24 * time.Hour
	defaultMaxTurnLife  = 7 * 24 * time.Hour
	defaultSweepEvery   = 5 * time.Minute
	defaultParkAfter    = 10 * time.Second
)

// Config configures a [Worker]. oneturn.Config documents its fields; the zero value of each means its
// default.
type Config struct {
	Workflows string
	Tools     []Tool
	Watch     bool
	Python    Python

	Prefix        string
	ReplyPrefixes []string
	Pool          string
	Name          string
	Slots         int

	ToolTimeout  time.Duration
	SoftStop     time.Duration
	BindingGrace time.Duration
	Alone        func() bool
	MaxEventAge  time.Duration
	MaxTurnLife  time.Duration
	ParkAfter    time.Duration

	CacheBytes int
	SecretKeys *secrets.Keys
	SweepEvery time.Duration
	StoreUse   func() (used, limit int64, err error)

	Tracer   engine.Tracer
	Logger   *slog.Logger
	Registry prometheus.Registerer
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
		errs = append(errs, errors.New("nothing to run: set Workflows to a folder of workflows, or Tools"))
	}
	def(&c.Prefix, subjects.DefaultPrefix)
	def(&c.Pool, subjects.DefaultPool)
	def(&c.Slots, defaultSlots)
	def(&c.ToolTimeout, defaultToolTimeout)
	def(&c.SoftStop, defaultSoftStop)
	def(&c.BindingGrace, defaultBindingGrace)
	def(&c.MaxEventAge, defaultMaxEventAge)
	def(&c.MaxTurnLife, defaultMaxTurnLife)
	def(&c.SweepEvery, defaultSweepEvery)
	def(&c.ParkAfter, defaultParkAfter)
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
	if c.Slots < 0 {
		errs = append(errs, fmt.Errorf("the number of Slots is %d, want at least 1", c.Slots))
	}
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

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
