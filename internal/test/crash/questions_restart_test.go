//go:build failpoints

package crash_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// read waits until the person has read n questions.
func (r *rig) read(n int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	_, err := r.asks.human.AwaitQuestions(ctx, n)
	require.NoError(r.t, err)
}

// kill9 ends a process as the kernel does.
func (r *rig) kill9(p *process) {
	r.t.Helper()
	require.NoError(r.t, p.cmd.Process.Kill())
	require.True(r.t, r.wait(p, func() bool { return false }))
}

// F02, C15: the answers come when no worker is left: neither one that was stopped gently nor one that was killed.
// They wait in the stream, and so do the turns that were not parked.
func TestAnswersThatComeWhenAllWorkersAreGone(t *testing.T) {
	t.Parallel()
	for _, gently := range []bool{true, false} {
		for _, park := range []time.Duration{parksSoon, parksLate} {
			name := map[bool]string{true: "stopped", false: "killed"}[gently] + map[time.Duration]string{parksSoon: "/parked", parksLate: "/in-memory"}[park]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				act, now := signalled(decision{Yes: true})
				r := newAsking(t, 1, park, act)
				worker := r.start("")
				r.publish(2, parkable, 1, false)
				r.read(len(r.accepted))
				if park == parksSoon {
					r.until("all turns are parked", r.drained)
				}
				if gently {
					require.False(t, r.wait(worker, func() bool { return true }), "a worker whose tools wait does not drain")
					require.True(t, r.drained(), "a drain parks what waits")
				} else {
					r.kill9(worker)
				}
				close(now)
				r.until("the answers are in the stream", func() bool { return int(r.left()) >= len(r.accepted) })
				r.settle()
			})
		}
	}
}

// F10: the server, a process separate from the worker, stops with open questions and starts again; and so does
// it with a worker in it, which is killed with it.
func TestServerThatStartsAgainWithOpenQuestions(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{"separate": false, "embedded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act, now := signalled(decision{Yes: true})
			store := filepath.Join(t.TempDir(), "store")
			r := newRigOn(t, store)
			r.answeredBy(2, parksSoon, oneturntest.Rule{Ask: "1", Acts: []oneturntest.Act{act}}, oneturntest.Rule{Acts: []oneturntest.Act{yes(0)}})
			ask := effects // an unsafe tool waits in memory, the others are parked
			if inside {
				require.NoError(t, r.server.Stop())
				r.embeds, ask = store, parkable
			}
			worker := r.start("")
			r.until("the server is there", func() bool {
				_, err := r.js.Stream(t.Context(), r.space.InStream())
				return err == nil
			})
			r.publish(2, ask, 1, false)
			r.read(len(r.accepted))
			if inside {
				r.kill9(worker)
				worker = r.start("")
			} else {
				require.NoError(t, r.server.Stop())
				r.serve(store)
			}
			close(now)
			over := r.atRest()
			r.until("all turns have ended", func() bool { return r.answered() >= len(r.accepted) })
			if inside { // what is judged is read from a server of the test
				r.kill9(worker)
				r.embeds = ""
				r.serve(store)
			} else {
				r.wait(worker, over)
			}
			r.settle()
		})
	}
}

// serve starts a server where the one before was, on the same store.
func (r *rig) serve(store string) {
	r.t.Helper()
	r.server = oneturntest.NewServer(r.t, func(o *embedded.Options) {
		o.Listen, o.Store = strings.TrimPrefix(r.server.URL(), "nats://"), store
	})
	r.until("the server is there", func() bool {
		_, err := r.js.Stream(r.t.Context(), r.space.InStream())
		return err == nil
	})
}

// F28: an answer, another one, the end of the time and a cancel contend for the same questions,
// while workers die. One of them counts, and all readers got it.
func TestAnswerExpiryAndCancelContendForTheSameQuestion(t *testing.T) {
	t.Parallel()
	const within = 1500 * time.Millisecond
	around := func(ctx context.Context) { pause(ctx, within-200*time.Millisecond+rand.N(400*time.Millisecond)) }
	act := func(by string) oneturntest.Act { return oneturntest.Act{Value: decision{By: by}, When: around} }
	for name, park := range map[string]time.Duration{"parked": parksSoon, "in-memory": parksLate} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).answeredBy(1, park, oneturntest.Rule{Acts: []oneturntest.Act{act("Ada")}})
			bob, err := oneturntest.StartHuman(t.Context(), r.server.Connect(), oneturntest.HumanOptions{App: "app", Rules: []oneturntest.Rule{
				{Acts: []oneturntest.Act{act("Bob")}},
			}})
			require.NoError(t, err)
			defer bob.Stop()
			eve, err := oneturntest.StartHuman(t.Context(), r.server.Connect(), oneturntest.HumanOptions{App: "app", Rules: []oneturntest.Rule{
				{Acts: []oneturntest.Act{{Cancel: true, When: func(ctx context.Context) {
					if rand.N(2) == 0 {
						<-ctx.Done()
					}
					around(ctx)
				}}}},
			}})
			require.NoError(t, err)
			defer eve.Stop()
			r.asks.within, r.asks.mayFail = within, true
			r.publish(4, effects, 1, false)
			for _, point := range []string{failpoint.AfterAnswer, failpoint.AfterTaken, failpoint.AfterResume} {
				p, begin := r.start(point+"=kill@2"), time.Now()
				r.wait(p, func() bool { return time.Since(begin) > within+time.Second })
			}
			last := r.start("")
			r.wait(last, r.atRest())
			bob.Stop()
			eve.Stop()
			facts := r.judge(time.Now(), bob.Answers()...)
			decided := map[string]int{}
			for _, record := range facts.Journal {
				if k, _ := subjects.ParseKey(record.Key); k.Kind == "answer" {
					decided[record.Meta.Outcome]++
				}
			}
			t.Logf("%s: decided %v", t.Name(), decided)
			require.GreaterOrEqual(t, len(decided), 2, "nothing contended: %v", decided)
			require.NotZero(t, decided[string(idempotency.Answered)]+decided[string(idempotency.Expired)])
		})
	}
}
