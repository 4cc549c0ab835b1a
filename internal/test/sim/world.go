package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// The world is one schedule: its clock, its random source, and everything that exists in it. All files of the package
// have methods of it.

// Settings of the simulated deployment.
const (
	usualAckWait = 30 * time.Second
	bindingGrace = 30 * time.Second
	maxEventAge  = time.Hour
	slots        = 3  // threads of a worker
	maxBurst     = 12 // steps
	maxTakeovers = 10
)

// Bounds of a schedule, in steps.
const (
	faultSteps = 400
	maxSteps   = 20000
)

// worldBegins is when schedules begin.
var worldBegins = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// world is one schedule.
type world struct {
	sim       *Simulator
	seed      uint64
	rng       *rand.Rand
	now       time.Time
	steps     int
	ackWait   time.Duration // of the consumers
	before    time.Duration // what it was until it was lowered
	lowered   time.Time
	faults    faults
	healed    bool
	full      bool // the store is nearly full
	fullSince time.Time

	pools        []string
	store        *store
	processes    []*process
	turns        []*turn
	former       []*turn // that ended before their keys were used again
	conversation []*chatMessage
	judged       int      // how often the decider of handoffs was asked
	models       []*asked // calls of the model that corrects outputs
	begun        int      // step in which that happened, 0 before
	unsent       []*message
	queue        []*message // by sequence, from 1
	flying       []func()   // what was sent and has not arrived
	notices      []notice
	letters      map[uint64]string // sequence → reason
	documents    *documents        // of context variables
	ledger       []*entry
	hits         map[idempotency.Lease]int // deliveries that met a fault, by what the journal held then
	schedules    map[string]schedule       // by call and question
	deferrals    map[string]deferred       // by id
	losing       *message                  // that will be delivered again next
	room         int                       // for so many of them
	noRoom       int                       // how often there was none
	swept        swept
	passes       []pass // what tools were handed
	results      []senderResult
	polled       int    // records in the journal when those who wait in memory looked last
	active       *fiber // the one that runs, nil while the scheduler does

	bursts bool   // threads run alone for some steps
	runner *fiber // the one that does
	burst  int    // its steps that are left

	options    []option // reused by act
	tracing    bool
	trace      []string
	violations []string
}

// notice is a live copy on its way to a worker.
type notice struct {
	p    *process
	life int
	see  func(*process)
}

func newWorld(s *Simulator, seed uint64, tracing bool) *world {
	w := &world{
		sim: s, seed: seed, tracing: tracing, rng: rand.New(rand.NewPCG(seed, 0x6f6e657475726e)),
		now: worldBegins, ackWait: usualAckWait,
		letters: map[uint64]string{}, schedules: map[string]schedule{}, deferrals: map[string]deferred{}, hits: map[idempotency.Lease]int{},
	}
	w.store = newStore(w)
	w.documents = &documents{w: w, data: map[string][]byte{}, revision: map[string]uint64{}}
	w.faults = w.newFaults()
	w.room = math.MaxInt
	if w.chance(1, 3) {
		w.room = w.rng.IntN(maxDeferred)
	}
	w.pools = []string{subjects.DefaultPool}
	workers := 2 + w.rng.IntN(2)
	if w.chance(1, 4) {
		w.pools = append(w.pools, "other")
		workers = 2 * len(w.pools)
	}
	w.plan()
	mixed := w.chance(1, 2)
	w.bursts = w.chance(1, 2)
	for i := range workers {
		p := &process{w: w, name: fmt.Sprintf("w%d", i+1), pool: w.pools[i%len(w.pools)]}
		w.processes = append(w.processes, p)
		p.start(w.manifest(mixed))
	}
	return w
}

// manifest draws what a worker knows.
func (w *world) manifest(mixed bool) manifest {
	if !mixed || w.chance(1, 2) {
		return w.sim.manifests[0]
	}
	return w.sim.manifests[w.rng.IntN(len(w.sim.manifests))]
}

// chance is true in k of n cases.
func (w *world) chance(k, n int) bool { return w.rng.IntN(n) < k }

func (w *world) tracef(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%4d ", w.steps)+fmt.Sprintf(format, args...))
	}
}

func (w *world) violatef(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
	w.tracef("VIOLATION: "+format, args...)
}

// hit notes that a delivery met a fault.
func (w *world) hit(l idempotency.Lease) {
	if _, before := w.hits[l]; !before {
		w.hits[l] = len(w.store.log)
	}
}

// hitBefore reports whether a delivery met a fault before a record was stored.
func (w *world) hitBefore(l idempotency.Lease, r *idempotency.Record) bool {
	known, hit := w.hits[l]
	return hit && uint64(known) < r.Seq
}

// announce sends a live copy to every worker.
func (w *world) announce(see func(*process)) {
	for _, p := range w.processes {
		if p.up && !w.strike(LostLive, 3) {
			w.notices = append(w.notices, notice{p, p.life, see})
		}
	}
}

func (w *world) turnOf(name string) *turn {
	for _, t := range w.turns {
		if t.id.Turn == name {
			return t
		}
	}
	return nil
}

// shutdown ends all goroutines.
func (w *world) shutdown() {
	for _, p := range w.processes {
		p.end()
	}
}

func (w *world) result() Result {
	r := Result{
		Seed: w.seed, Violations: w.violations, Trace: w.trace, Steps: w.steps, Turns: len(w.turns),
		Entries: len(w.ledger), Faults: w.faults.struck, Outcomes: map[string]int{}, Questions: map[string]int{}, Programs: map[string]int{}, Sweeps: map[string]int{}, Messages: map[string]int{},
	}
	r.Again = len(w.former)
	for _, t := range append(w.former, w.turns...) {
		h := w.history(t)
		if len(h.responses) > 0 {
			r.Outcomes[h.responses[0].code()]++
		}
		w.countProgram(t, &h, r.Programs)
		if len(t.asks()) > 0 {
			w.count(&h, r.Questions)
		}
	}
	w.countMessages(r.Messages)
	r.Questions["without room"] = w.noRoom
	r.Sweeps["begun"], r.Sweeps["resumes"] = w.swept.begun, w.swept.resumes
	for _, v := range w.results {
		r.Questions[string(v.code)]++
	}
	return r
}
