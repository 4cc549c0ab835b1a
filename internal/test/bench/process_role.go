package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/nats-io/nats.go"
)

// Server, worker and publisher are roles. A role runs in this process or in a child of the same binary, which reads its
// spec and then requests from standard input and writes a reply for each (child). So the memory and the CPU of each can
// be measured alone.

// spec is what a role is and how it runs.
type spec struct {
	Role       string  `json:"role"` // server, worker, publisher, sweeper, or one of the gateway's: frontends, relay, gateway
	Arm        string  `json:"arm"`  // of a worker: product, raw or usual
	URL        string  `json:"url"`  // of the server; one that starts again listens where it did
	Store      string  `json:"store"`
	MaxPayload int     `json:"max_payload"` // of the server, 0 for its default
	Payload    string  `json:"payload"`
	InFlight   int     `json:"in_flight"`
	Folders    folders `json:"folders"`  // that the worker reads and the turns name, besides or instead of Go tools bound in code
	Children   int     `json:"children"` // processes of Python a workflow, 0 for the default
	// ParkAfter is how long a question is waited for in memory; a negative value parks immediately.
	ParkAfter time.Duration `json:"park_after"`
	// BindingGrace is how long a turn of an unknown workflow waits, 0 for the default.
	BindingGrace time.Duration `json:"binding_grace"`
	// SweepRate bounds how many headers and turns a second a sweep reads; 0 = unlimited.
	SweepRate int `json:"sweep_rate"`

	CPUProfile string `json:"cpu_profile"`
	MemProfile string `json:"mem_profile"`
}

// request is what a role is asked for once it runs.
type request struct {
	Do    string `json:"do"` // usage, settle, profile, profiled; of a worker also run, of a publisher fill, pace, retain, leave and answer, of a sweeper sweep
	From  int    `json:"from"`
	Count int    `json:"count"`
	Rate  int    `json:"rate"` // turns a second, for pace; answers, for answer

	TurnsAChat int `json:"turns_a_chat"` // for retain

	Ask       bool             `json:"ask"`                 // the turns are turns of the tool that asks, for fill
	Until     int64            `json:"until"`               // and they do so until then, spread over the second after it, Unix nanoseconds; 0 for no end
	Frontends *frontendRequest `json:"frontends,omitempty"` // of frontends: history, open, first, deliver, leave

	Of int `json:"of"` // for answer: from how many turns, from From on, those to answer are taken; for leave: see there
}

type reply struct {
	URL   string  `json:"url,omitempty"`   // of a server that has started
	Usage usage   `json:"usage"`           // for usage
	Swept *swept  `json:"swept,omitempty"` // for sweep
	Sent  []int64 `json:"sent,omitempty"`  // for pace and answer: when each message was published, Unix nanoseconds
	Error string  `json:"error,omitempty"`

	Frontends *frontendReply `json:"frontends,omitempty"`
}

// role is what a server, a worker or a publisher does, in this process or in a separate one.
type role interface {
	do(ctx context.Context, r request) (reply, error)
	close() error
}

// dialer connects to the server.
type dialer func() (*nats.Conn, error)

func dialTCP(url string) dialer {
	return func() (*nats.Conn, error) { return nats.Connect(url, connection()...) }
}

// connection is how a worker's connection should be made (see oneturn.NewWorker).
func connection() []nats.Option {
	return []nats.Option{nats.ReconnectBufSize(-1), nats.MaxReconnects(-1)}
}

// start starts a role in this process.
func start(ctx context.Context, s spec, dial dialer) (role, reply, error) {
	switch s.Role {
	case "server":
		server, err := startServer(ctx, s)
		if err != nil {
			return nil, reply{}, err
		}
		return server, reply{URL: server.URL()}, nil
	case "worker":
		worker, err := startWorker(ctx, s, dial)
		return worker, reply{}, err
	case "publisher":
		publisher, err := startPublisher(s, dial)
		return publisher, reply{}, err
	case "sweeper":
		sweeper, err := startSweeper(s, dial)
		return sweeper, reply{}, err
	case "frontends":
		frontends, err := startFrontends(s, dial)
		return frontends, reply{}, err
	case "relay":
		relay, err := startRelay(s, dial)
		if err != nil {
			return nil, reply{}, err
		}
		return relay, reply{URL: relay.url}, nil
	case "gateway":
		gateway, err := startProfiledGateway(ctx, s, dial)
		if err != nil {
			return nil, reply{}, err
		}
		return gateway, reply{URL: gateway.url}, nil
	}
	return nil, reply{}, fmt.Errorf("role %q is not a role of this program", s.Role)
}

// child is the life of a process that is one role: a spec on stdin, then requests until
// stdin ends; a reply on stdout for each.
func child(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	var s spec
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	if s.MemProfile != "" {
		runtime.MemProfileRate = memProfileRate
	}
	running, hello, err := start(ctx, s, dialTCP(s.URL))
	if err != nil {
		return errors.Join(err, out.Encode(reply{Error: err.Error()}))
	}
	if err := out.Encode(hello); err != nil {
		return errors.Join(err, running.close())
	}
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, running.close())
		}
		answer, err := running.do(ctx, r)
		if err != nil {
			answer.Error = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			return errors.Join(err, running.close())
		}
	}
}

// process answers what every role is asked about the process it runs in.
type process struct {
	spec spec
	cpu  *os.File
}

// memProfileRate is how many bytes are allocated between two samples of an allocation profile.
const memProfileRate = 4 << 10

func (p *process) do(r request) (reply, error) {
	switch r.Do {
	case "usage":
		return reply{Usage: readUsage()}, nil
	case "settle":
		runtime.GC()
		return reply{}, nil
	case "profile":
		return reply{}, p.startProfile()
	case "profiled":
		return reply{}, p.stopProfile()
	}
	return reply{}, fmt.Errorf("a %s does not %q", p.spec.Role, r.Do)
}

func (p *process) startProfile() error {
	if p.spec.CPUProfile == "" {
		return nil
	}
	var err error
	if p.cpu, err = os.Create(p.spec.CPUProfile); err != nil {
		return fmt.Errorf("CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(p.cpu); err != nil {
		return fmt.Errorf("CPU profile: %w", err)
	}
	return nil
}

func (p *process) stopProfile() error {
	if p.cpu != nil {
		pprof.StopCPUProfile()
		if err := p.cpu.Close(); err != nil {
			return fmt.Errorf("CPU profile: %w", err)
		}
	}
	if p.spec.MemProfile == "" {
		return nil
	}
	f, err := os.Create(p.spec.MemProfile)
	if err != nil {
		return fmt.Errorf("allocation profile: %w", err)
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
