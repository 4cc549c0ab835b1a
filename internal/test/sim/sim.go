package sim

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/subjects"
)

// Simulator runs schedules. It is safe for concurrent use: a schedule shares nothing with
// another one.
type Simulator struct {
	space     subjects.Space
	metrics   *metrics.Metrics
	manifests []manifest
}

// New returns a simulator.
func New() (*Simulator, error) {
	space, err := subjects.New("oneturn")
	if err != nil {
		return nil, err
	}
	metrics, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	manifests, err := loadManifests()
	if err != nil {
		return nil, err
	}
	return &Simulator{space: space, metrics: metrics, manifests: manifests}, nil
}

// Result is the result of one schedule.
type Result struct {
	Seed       uint64
	Violations []string // what broke the promise; none is how it should be
	Trace      []string // what happened, step by step; only from Replay
	Steps      int
	Turns      int
	Again      int            // of them whose keys were used again after the retention
	Entries    int            // how often tools were entered
	Faults     map[Fault]int  // how often each fault struck
	Outcomes   map[string]int // codes of the responses, "ok" for those without
	Questions  map[string]int // how questions to people went, and the turns that asked them
	Programs   map[string]int // how programs went
	Messages   map[string]int // how messages of agents and users went
	Sweeps     map[string]int // how many there were, and how many resumes they published
}

// Run runs the schedule of a seed. The same seed gives the same schedule as long as neither
// the code under test nor this package changes.
func (s *Simulator) Run(seed uint64) Result { return s.run(seed, false) }

// Replay is Run with the trace of all steps.
func (s *Simulator) Replay(seed uint64) Result { return s.run(seed, true) }

func (s *Simulator) run(seed uint64, tracing bool) Result {
	w := newWorld(s, seed, tracing)
	defer w.shutdown()
	w.schedule()
	if len(w.violations) == 0 {
		w.check()
	}
	return w.result()
}

// String reports the seed, the violations, the trace if there is one, and how to see it again.
func (r Result) String() string {
	var b strings.Builder
	for _, line := range r.Trace {
		fmt.Fprintln(&b, line)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "seed %d: VIOLATION: %s\n", r.Seed, v)
	}
	fmt.Fprintf(&b, "replay: go test ./internal/test/sim -run TestSchedules -sim.seed=%d -v\n", r.Seed)
	return b.String()
}
