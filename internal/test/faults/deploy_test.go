package faults_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// F26: each of two workers is replaced ten times under load. No turn is lost, none interrupted,
// no tool is entered twice.
func TestTwentyRollingRestartsLoseAndInterruptNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	config := func() oneturn.Config {
		return oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "unsafe")}, SoftStop: 20 * time.Second, Slots: 8}
	}
	var stops [2]func()
	for i := range stops {
		_, stops[i] = r.start(config())
	}
	l := r.load(200)
	for round := range 20 {
		r.goesOn(l, 20)
		i := round % len(stops)
		stop := stops[i]
		_, stops[i] = r.start(config()) // the new one first, as a rolling deploy does
		stop()
	}
	facts := r.settle(l)
	require.Greater(t, len(facts.Accepted), 400)
	entries := map[string]int{}
	for _, e := range facts.Ledger {
		entries[e.Phase]++
	}
	require.Equal(t, entries["enter"], entries["exit"])
	require.Len(t, facts.Accepted, entries["enter"])
	for _, record := range facts.Journal {
		k, _ := subjects.ParseKey(record.Key)
		require.NotEqual(t, "takeover", k.Kind, record.Key)
	}
}

// F27: a turn is taken over by a worker whose manifests have changed since the claim: the stricter
// effect applies, and a tool that is gone is not replaced by what is bound now.
func TestTakeoverRunsTheClaimedToolByTheStricterEffect(t *testing.T) {
	t.Parallel()
	const gone = "gone"
	for _, c := range []struct {
		claimed, now string
		code         events.Code
		entered      int
	}{
		{"unsafe", "idempotent", events.CodeInterrupted, 0},
		{"idempotent", "unsafe", events.CodeInterrupted, 0},
		{"idempotent", "none", "", 1},
		{"keyed", "idempotent", "", 1},
		{"idempotent", gone, events.CodeUnknownTool, 0},
	} {
		t.Run(c.claimed+" is "+c.now+" now", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			one := turn("Work", "chat", "t", c.claimed, 0)
			r.publish(one, c.code == events.CodeUnknownTool)
			claim := r.deadWorker(c.claimed)
			claim.Meta.Digest = "of-other-manifests"
			_, err := r.journal().Create(t.Context(), claim)
			require.NoError(t, err)
			tool := r.tool("Work", "none")
			if c.now != gone {
				tool = r.redeclared("Work", c.claimed, c.now)
			}
			r.start(oneturn.Config{Tools: []oneturn.Tool{tool}})
			require.Equal(t, c.code, r.await(one.TurnID).Code)
			require.Equal(t, c.entered, r.entered(one.TurnID))
			facts := r.settle(nil, one)
			require.Equal(t, "of-other-manifests", facts.Journal[0].Meta.Digest, "the journal shows that the manifests differ")
		})
	}
}

// F27: a turn runs while its manifest is replaced by one with another effect: it ends as it
// began, and the next one is bound again.
func TestManifestThatChangesUnderARunningTurnChangesTheNextOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	root := t.TempDir()
	writePython(t, root, "idempotent", "old")
	w, _ := r.start(oneturn.Config{Workflows: root, Watch: true})
	one, two := turn("Work", "chat", "1", "any", 0), turn("Work", "chat", "2", "any", 0)
	one.Data = map[string]any{"millis": number(1500)}
	_, err := r.client.Publish(t.Context(), one)
	require.NoError(t, err)
	kv := r.journal()
	effect := func(key string) string {
		var found string
		require.Eventually(t, func() bool {
			held, err := idempotency.Load(t.Context(), kv, subjects.TurnKey("app", "chat", "", key))
			if err != nil || held.Claim == nil {
				return false
			}
			found = held.Claim.Meta.Effect
			return true
		}, 20*time.Second, 5*time.Millisecond)
		return found
	}
	require.Equal(t, "idempotent", effect("1"))
	require.Eventually(t, func() bool { // a tool that is not entered yet has no code to keep
		_, err := os.Stat(filepath.Join(root, "entered"))
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
	before := w.Bindings().Digest()
	writePython(t, root, "none", "new")
	require.Eventually(t, func() bool { return w.Bindings().Digest() != before }, 20*time.Second, 5*time.Millisecond)
	_, err = r.client.Publish(t.Context(), two)
	require.NoError(t, err)
	require.Equal(t, "new", r.await(two.TurnID).Payload)
	require.Equal(t, "none", effect("2"))
	response := r.await(one.TurnID)
	require.Equal(t, "old", response.Payload, response.Content)
	require.Equal(t, "1", strconv.Itoa(response.Attempts))
}
