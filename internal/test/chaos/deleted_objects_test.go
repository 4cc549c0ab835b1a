//go:build chaos

package chaos_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// vanishScenarios take away what workers need and never make: consumer, journal, messages.
func vanishScenarios() []scenario {
	return []scenario{
		{"delete-consumer", "F17", one(), deleteConsumer},
		{"delete-journal", "F17", one(), deleteJournal},
		{"journal-created-again", "F17", one(), remakeJournal},
		{"purge-inbound-stream", "F17", setup{servers: 1, workers: 3, rate: 60, sweep: 2 * time.Second}, purgeInbound},
	}
}

// deleteConsumer takes the workers' consumer away: they report it and end, and create none themselves. Once it is provisioned again, other workers end what is there.
func deleteConsumer(r *rig) {
	at := r.strike("delete the consumer")
	require.NoError(r.T, r.js.DeleteConsumer(r.Context(), r.space.InStream(), r.space.WorkerConsumer(subjects.DefaultPool)))
	r.ended()
	r.cluster.Provision(r.provisioned)
	r.startWorkers()
	r.recovers(at)
	r.settle()
}

// deleteJournal takes the journal away, with turns inside their tools. Nothing is settled that
// has no response, nothing is provisioned next to the old queue, and nothing runs until an operator starts again.
func deleteJournal(r *rig) {
	r.longTurns()
	at := r.strike("delete the journal")
	require.NoError(r.T, r.js.DeleteStream(r.Context(), r.space.TurnsStream()))
	r.ended()
	_, err := r.js.Stream(r.Context(), r.space.TurnsStream())
	require.ErrorIs(r.T, err, jetstream.ErrStreamNotFound, "a worker made a journal")
	r.nothingIsLost()
	plan, err := provision.New(provision.Options{AckWait: ackWait})
	require.NoError(r.T, err)
	_, err = provision.Apply(r.Context(), r.js, plan)
	require.ErrorIs(r.T, err, provision.ErrRefused)
	r.beginAnew(at)
}

// remakeJournal puts an empty journal in the place of the one that workers use. It has forgotten
// every claim: they may store nothing in it that has a tool entered.
func remakeJournal(r *rig) {
	r.longTurns()
	s, err := r.js.Stream(r.Context(), r.space.TurnsStream())
	require.NoError(r.T, err)
	at := r.strike("delete the journal and create it again")
	require.NoError(r.T, r.js.DeleteStream(r.Context(), r.space.TurnsStream()))
	_, err = r.js.CreateStream(r.Context(), s.CachedInfo().Config)
	require.NoError(r.T, err)
	r.ended()
	r.mark = oneturntest.Mark{}
	facts := r.collect()
	entered := map[string]uint64{}
	for _, e := range facts.Ledger {
		if e.Phase == oneturntest.PhaseEnter {
			entered[subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn).String()] = e.Token
		}
	}
	for _, record := range facts.Journal {
		k, _ := subjects.ParseKey(record.Key)
		if token, ok := entered[k.String()]; ok && token == record.Seq {
			r.Errorf("I2 %s: its tool was entered under record %d of a journal that was created again", k, record.Seq)
		}
	}
	r.nothingIsLost()
	r.beginAnew(at)
}

// longTurns has turns inside their tools.
func (r *rig) longTurns() {
	r.Helper()
	for n := range 2 * len(effects) {
		turn := r.special("long-"+strconv.Itoa(n), effects[n%len(effects)], 1500*time.Millisecond, nil)
		require.NoError(r.T, r.publish(r.Context(), turn))
		r.entered(turn)
	}
}

// ended waits until every worker has ended by itself, with an error that names the fix.
func (r *rig) ended() {
	r.Helper()
	for _, w := range r.workers {
		require.ErrorContains(r.T, w.Wait(patience), "exit status 1", "a worker has to end")
	}
	require.Contains(r.T, r.logTail(), "worker failed")
	require.Contains(r.T, r.logTail(), "turnctl provision")
}

func (r *rig) startWorkers() {
	r.Helper()
	for i := range r.workers {
		r.workers[i] = r.startWorker(i)
	}
}

// nothingIsLost ends the load and holds what the old journal had stored, as subscribers saw it,
// and what waits in the inbound stream against what was accepted; and the ledger against what
// it allows.
func (r *rig) nothingIsLost() {
	r.Helper()
	require.Zero(r.T, r.load.Stop(r.Context()))
	accepted := append(r.load.Accepted(), r.extra...)
	r.mark = oneturntest.Mark{}
	answered := map[string]bool{}
	entered := map[string]int{}
	facts := r.collect()
	for _, c := range facts.Copies {
		if k, ok := subjects.ParseKey(c.Key); ok && k.Kind == events.KindToolResponse {
			answered[k.String()] = true
		}
	}
	for _, e := range facts.Ledger {
		if e.Phase == oneturntest.PhaseEnter {
			entered[subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn).String()]++
		}
	}
	open := 0
	for _, a := range accepted {
		key := subjects.TurnKey(a.App, a.Chat, a.Run, a.Turn).String()
		if !answered[key] {
			open++
		}
		if (a.Effect == "unsafe" || a.Effect == "replay") && entered[key] > 1 {
			r.Errorf("I2 %s: effect %s, entered %d times", key, a.Effect, entered[key])
		}
	}
	if uint64(open) > facts.Left {
		r.Errorf("I1 : %d turns have no response, and only %d messages are left to end them", open, facts.Left)
	}
}

// beginAnew forgets everything, as an operator who has no backup does, and has new turns run.
func (r *rig) beginAnew(since time.Time) {
	r.Helper()
	for _, name := range []string{r.space.InStream(), r.space.TurnsStream(), oneturntest.AuditStream} {
		if err := r.js.DeleteStream(r.Context(), name); err != nil {
			require.ErrorIs(r.T, err, jetstream.ErrStreamNotFound)
		}
	}
	r.cluster.Provision(r.provisioned)
	require.NoError(r.T, oneturntest.Audit(r.Context(), r.js, r.space, r.setup.servers))
	require.NoError(r.T, os.Truncate(r.path("ledger"), 0))
	const later = 100_000 // numbers that no turn before has
	r.mark, r.extra, r.load = oneturntest.Mark{}, nil, r.startLoad(later)
	r.startWorkers()
	r.recovers(since)
	r.settle()
}

// purgeInbound takes all messages away, and the worker that held some of them. No worker ends;
// what was claimed is ended, by its owner or by a sweep; what was not has no owner any more.
func purgeInbound(r *rig) {
	r.longTurns()
	for n := range 150 { // more than the workers take
		require.NoError(r.T, r.publish(r.Context(), r.special("waits-"+strconv.Itoa(n), effects[n%len(effects)], time.Second, nil)))
	}
	at := r.strike("purge the inbound stream and kill worker 0")
	in, err := r.js.Stream(r.Context(), r.space.InStream())
	require.NoError(r.T, err)
	require.NoError(r.T, in.Purge(r.Context()))
	r.replace(0, false)
	r.recovers(at)
	claimed := map[string]bool{}
	require.Eventually(r.T, func() bool { // all that was claimed by now, also by dead workers
		r.mark = oneturntest.Mark{}
		open := map[string]bool{}
		for _, record := range r.collect().Journal {
			switch k, _ := subjects.ParseKey(record.Key); k.Kind {
			case events.KindToolCall:
				claimed[k.String()] = true
				open[k.String()] = record.Time.Before(at)
			case events.KindToolResponse:
				delete(open, k.String())
			}
		}
		return !slices.Contains(slices.Collect(maps.Values(open)), true)
	}, patience, time.Second, "turns whose messages were purged are not ended")
	r.mark = oneturntest.Mark{}
	r.purged = func(a oneturntest.Accepted) bool {
		return a.At.Before(at.Add(time.Second)) && !claimed[subjects.TurnKey(a.App, a.Chat, a.Run, a.Turn).String()]
	}
	r.settle()
}
