//go:build chaos || soak

package chaos_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// ackWait is the one of the consumers: what a dead worker held is redelivered so soon.
const ackWait = 2 * time.Second

// patience bounds every wait for the system to continue or to come to rest.
const patience = 90 * time.Second

// setup is what a rig is made of.
type setup struct {
	servers int // 1 or 3
	workers int
	rate    int                 // turns a second
	pad     int                 // bytes of padding in each turn
	store   func(r *rig) string // makes the directory of the servers' stores; nil for one of the test
	proxies bool                // each worker is connected through a separate proxy, to one server
	linked  bool                // three servers whose links can be cut
	sweep   time.Duration       // time between two sweeps; 0 for the default
	ackWait time.Duration       // 0 for the usual
	samples string              // file for the samples of the first worker
	binary  func(r *rig) string // test binary of the workers at the beginning; nil for this one
	asks    int                 // each so manieth turn asks a question; 0: none
}

// rig is a cluster with workers under load.
type rig struct {
	*testing.T

	setup   setup
	rng     *rand.Rand
	cluster *harness.Cluster
	space   subjects.Space
	nc      *nats.Conn
	js      jetstream.JetStream
	client  *oneturn.Client // without Nats-Msg-Id: repeated publishes are stored again
	named   *oneturn.Client // with
	dir     string
	store   string // directory of the servers' stores
	proxies []*harness.Proxy
	load    *harness.Load
	person  *person // answers questions, nil if there are none

	responses atomic.Int64 // live copies of responses that were seen
	poison    int          // messages that have to end as dead letters

	purged func(oneturntest.Accepted) bool // turns that no worker had claimed when their messages were taken away; nil for none

	workers  []*oneturntest.Process
	binaries []string // of the workers, "" for this one

	hit       map[string]bool  // turns that a fault struck; nil: perhaps all
	mark      oneturntest.Mark // what was judged already
	strikes   []string
	recovered time.Duration // longest from a strike until turns continued
	healed    time.Time     // when the last fault was over
	canaries  harness.Canaries
	extra     []oneturntest.Accepted // turns besides the load's
	rested    time.Duration          // from the end of the load to an empty stream
	outcome   outcome                // of what was judged last
}

func newRig(t *testing.T, seed uint64, s setup) *rig {
	t.Helper()
	r := &rig{
		T: t, setup: s, rng: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), canaries: harness.NewCanaries(),
	}
	if s.store != nil {
		r.store = s.store(r)
	}
	var err error
	r.space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	if s.linked {
		r.cluster = harness.NewLinkedCluster(t, r.store)
	} else {
		r.cluster = harness.NewCluster(t, s.servers, r.store)
	}
	r.cluster.Provision(r.provisioned)
	r.nc = r.cluster.Connect(connectOptions()...)
	r.js, err = jetstream.New(r.nc, jetstream.WithDefaultTimeout(2*time.Second))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		err = oneturntest.Audit(t.Context(), r.js, r.space, s.servers)
		return err == nil
	}, patience, 200*time.Millisecond)
	r.client, err = oneturn.NewClient(r.nc, oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	r.named, err = oneturn.NewClient(r.nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	_, err = r.nc.Subscribe(r.space.EventsOfKind(events.KindToolResponse), func(*nats.Msg) { r.responses.Add(1) })
	require.NoError(t, err)
	r.binaries = make([]string, s.workers)
	for i := range s.workers {
		if s.binary != nil {
			r.binaries[i] = s.binary(r)
		}
		if s.proxies {
			r.proxies = append(r.proxies, harness.NewProxy(t, r.cluster.Nodes()[i%s.servers].Addr()))
		}
		r.workers = append(r.workers, r.startWorker(i))
	}
	if s.asks > 0 {
		r.person = r.startPerson()
	}
	r.load = r.startLoad(0)
	r.goesOn()
	return r
}

// startLoad publishes turns from the nth on.
func (r *rig) startLoad(from int) *harness.Load {
	return harness.StartLoad(r.Context(), harness.LoadOptions{
		Rate: r.setup.rate, Publish: r.publish,
		Turn: func(n int) (*oneturn.Turn, oneturntest.Accepted) { return r.turn(from + n) },
	})
}

func (r *rig) provisioned(o *provision.Options) { o.AckWait = cmp.Or(r.setup.ackWait, ackWait) }

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// startWorker returns once the worker consumes: one that is cut off before that ends with an
// error, for whatever restarts it.
func (r *rig) startWorker(i int) *oneturntest.Process {
	r.Helper()
	url := r.cluster.URL()
	if r.setup.proxies {
		url = r.proxies[i].URL()
	}
	env := []string{
		envURL + "=" + url, envLedger + "=" + r.path("ledger"), envLog + "=" + r.path("workers.log"), envSlots + "=16", envSamples + "=", envSweep + "=" + r.setup.sweep.String(),
	}
	if i == 0 && r.setup.samples != "" {
		env = append(env, envSamples+"="+r.setup.samples)
	}
	start := oneturntest.StartProcess
	if binary := r.binaries[i]; binary != "" {
		start = func(tb testing.TB, role string, env ...string) *oneturntest.Process {
			tb.Helper()
			return oneturntest.StartBinary(tb, binary, role, env...)
		}
	}
	w := start(r.T, roleWorker, env...)
	ready := regexp.MustCompile(fmt.Sprintf(`msg="worker (ready|started)" pid=%d `, w.PID())) // the latter of older ones
	require.Eventually(r.T, func() bool {
		log, err := os.ReadFile(r.path("workers.log"))
		return err == nil && ready.Match(log)
	}, patience, 10*time.Millisecond, "the worker does not start; log: %s", r.logTail())
	return w
}

// turn makes the nth turn: each effect in its turn, one of ten rejected before its tool.
func (r *rig) turn(n int) (*oneturn.Turn, oneturntest.Accepted) {
	effect := effects[n%len(effects)]
	accepted := oneturntest.Accepted{App: "app", Chat: "chat-" + strconv.Itoa(n%17), Turn: effect + "-" + strconv.Itoa(n), Effect: effect}
	data := map[string]any{"millis": json.Number(strconv.Itoa(1 + n*7%50)), "dies": json.Number("0"), "stops": false, "pad": r.canaries.Of("data") + strings.Repeat("x", r.setup.pad)}
	if r.asksAPerson(n) {
		data["asks"], accepted.Turn = true, accepted.Turn+asks
	}
	if n%10 == 9 {
		data["millis"] = "long"
		accepted.Effect, accepted.MayFail = "", true
	}
	return &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: accepted.App, Chat: accepted.Chat, Turn: accepted.Turn},
		Workflow: "Chaos", Agent: "Agent_" + effect, Model: "Work", Data: data,
	}, accepted
}

// publish publishes every other turn with a Nats-Msg-Id.
func (r *rig) publish(ctx context.Context, t *oneturn.Turn) error {
	client := r.client
	if strings.HasSuffix(t.Turn, "1") || strings.HasSuffix(t.Turn, "2") {
		client = r.named
	}
	_, err := client.Publish(ctx, t)
	return err
}

// strike notes a fault.
func (r *rig) strike(format string, args ...any) time.Time {
	r.strikes = append(r.strikes, fmt.Sprintf(format, args...))
	return time.Now()
}

// goesOn waits until turns are published and answered again.
func (r *rig) goesOn() {
	r.Helper()
	const enough = 10
	published, answered := len(r.load.Accepted()), r.responses.Load()
	require.Eventually(r.T, func() bool {
		return len(r.load.Accepted()) >= published+enough && r.responses.Load() >= answered+enough
	}, patience, 20*time.Millisecond, "after %v: published %d, answered %d more", r.strikes, len(r.load.Accepted())-published, r.responses.Load()-answered)
}

// recovers is goesOn after a strike.
func (r *rig) recovers(since time.Time) {
	r.Helper()
	r.goesOn()
	r.recovered = max(r.recovered, time.Since(since))
}

// pause lets a fault last.
func (r *rig) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

// jitter is a random time up to d.
func (r *rig) jitter(d time.Duration) time.Duration { return time.Duration(r.rng.Int64N(int64(d))) }

// replace kills a worker, or ends it gently, and starts another in its place.
func (r *rig) replace(i int, gently bool) {
	r.Helper()
	old := r.workers[i]
	if gently {
		require.NoError(r.T, old.Stop(patience), "worker %d; log: %s", old.PID(), r.logTail())
	} else {
		old.Kill()
	}
	r.workers[i] = r.startWorker(i)
}

// drained waits until every message of the inbound stream is settled.
func (r *rig) drained() time.Duration {
	r.Helper()
	start := time.Now()
	var left uint64
	require.Eventually(r.T, func() bool {
		s, err := r.js.Stream(r.Context(), r.space.InStream())
		if err == nil {
			left = s.CachedInfo().State.Msgs
		}
		return err == nil && left == 0
	}, patience, 50*time.Millisecond, "after %v: %d messages are left in the inbound stream; log: %s", r.strikes, left, r.logTail())
	return time.Since(start)
}

// rest ends the load and waits until everything has come to rest.
func (r *rig) rest() {
	r.Helper()
	r.healed = time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	require.Zero(r.T, r.load.Stop(ctx), "turns are not acknowledged after %v", r.strikes)
	if r.person != nil {
		r.answered()
	}
	r.rested = r.drained()
}

// collect reads the facts. A cluster that has just met again may need a while.
func (r *rig) collect() *oneturntest.Facts {
	r.Helper()
	nc := r.cluster.Connect()
	for start := time.Now(); ; r.pause(time.Second) {
		facts, next, err := oneturntest.CollectSince(r.Context(), nc, r.space, r.path("ledger"), r.mark)
		if err == nil {
			r.mark = next
			return facts
		}
		require.Less(r.T, time.Since(start), patience, "the facts cannot be read: %v", err)
	}
}

// judge checks facts of the given turns and counts what is worth knowing.
func (r *rig) judge(facts *oneturntest.Facts, accepted []oneturntest.Accepted) outcome {
	r.Helper()
	accepted = append(accepted, r.extra...)
	if r.purged != nil {
		before := len(accepted)
		accepted = slices.DeleteFunc(accepted, r.purged)
		r.strike("%d turns gone", before-len(accepted))
	}
	facts.Accepted = accepted
	if r.person != nil {
		facts.Answers = r.person.take()
	}
	facts.Healed, facts.Within = r.healed, time.Minute+2*ackWait
	require.NotEmpty(r.T, facts.Copies)
	if len(facts.Dead) < r.poison || r.poison == 0 && len(facts.Dead) > 0 {
		r.Errorf("%d dead letters, want %d: %v", len(facts.Dead), r.poison, facts.Dead)
	}
	o := tally(facts)
	log, err := os.ReadFile(r.path("workers.log"))
	require.NoError(r.T, err)
	o.violations = append(oneturntest.Check(facts, r.hit), r.canaries.Check(facts, map[string]string{"the workers' log": string(log)})...)
	for _, v := range o.violations {
		r.Errorf("after %v: %s", r.strikes, v)
	}
	if r.Failed() {
		r.Logf("log of the workers: %s", r.logTail())
	}
	r.outcome = o
	return o
}

// logTail returns the end of the workers' log.
func (r *rig) logTail() string {
	data, err := os.ReadFile(r.path("workers.log"))
	if err != nil {
		return err.Error()
	}
	const most = 4000
	return string(data[max(0, len(data)-most):])
}
