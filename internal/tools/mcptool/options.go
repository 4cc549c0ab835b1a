package mcptool

import (
	"crypto/tls"
	"log/slog"
	"time"
)

const (
	defaultMaxResult = 10 << 20
	defaultStart     = time.Minute
	defaultProbe     = 2 * time.Second
	defaultIdle      = 5 * time.Minute
	defaultGrace     = 2 * time.Second
)

// Options of a [Tool] and of [Servers]. The zero value is usable.
type Options struct {
	// Servers shares their sessions with other tools, and brings all other options with it. nil
	// gives the tool separate sessions.
	Servers *Servers

	MaxResult    int           // bytes of a result; 0 is 10 MiB
	StartTimeout time.Duration // how long a session may take to be ready: its process to start, its tools to be listed; 0 is 1 minute
	ProbeTimeout time.Duration // how long a server may take to answer the newest protocol's first request before it gets the one of the older protocols; 0 is 2 s
	IdleAfter    time.Duration // how long an idle session is kept; 0 is 5 minutes
	Grace        time.Duration // how long a process may take to end once its input is closed, before its group is killed; 0 is 2 s
	Env          []string      // variables of the worker's environment that every process gets: NAME or PREFIX_*
	TLS          *tls.Config   // for servers on HTTP; nil trusts the system's authorities
	Logger       *slog.Logger  // gets what processes print; nil discards it
}

func (o Options) withDefaults() Options {
	if o.MaxResult <= 0 {
		o.MaxResult = defaultMaxResult
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = defaultStart
	}
	if o.ProbeTimeout <= 0 {
		o.ProbeTimeout = defaultProbe
	}
	if o.IdleAfter <= 0 {
		o.IdleAfter = defaultIdle
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxMessage bounds a message of a server: many send their result twice, as a structure and as
// text.
func (o Options) maxMessage() int { return 2*o.MaxResult + 1<<20 }
