//go:build chaos

package chaos_test

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
)

// settle heals what is left, brings the run to rest, ends the workers and judges.
func (r *rig) settle() outcome {
	r.Helper()
	r.cluster.Heal()
	r.cluster.WaitWhole(r.space.InStream(), r.space.TurnsStream(), oneturntest.AuditStream)
	for _, p := range r.proxies {
		p.Heal()
	}
	r.rest()
	r.leaksNothing()
	for _, w := range r.workers {
		select {
		case <-w.Done():
			r.Errorf("after %v: a worker ended by itself: %v; log: %s", r.strikes, w.Wait(patience), r.logTail())
		default:
			require.NoError(r.T, w.Stop(patience), "a worker did not drain; log: %s", r.logTail())
		}
	}
	facts := r.collect()
	o := r.judge(facts, r.load.Accepted())
	r.Log(o.line(r))
	return o
}

// line is the report of a scenario.
func (o outcome) line(r *rig) string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	return fmt.Sprintf("%s: %d turns, %d violations | longest gap: publish %s, response %s; recovery %s; at rest %s after the load | "+
		"interrupted %d, redelivered %d, takeovers %d, entered again %d, publishes repeated %d, asked %d, parked %d | %s",
		path.Base(r.Name()), o.turns, len(o.violations), round(r.load.Gap()), round(o.responseGap), round(r.recovered), round(r.rested),
		o.interrupted, o.redelivered, o.takeovers, o.reentered, r.load.Repeats(), o.asked, o.parked, strings.Join(r.strikes, ", "))
}
