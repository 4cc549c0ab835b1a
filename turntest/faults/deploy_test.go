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

// F27: two workers have different manifests. A turn that the first one has claimed and not
// ended keeps the effect that the first one's manifest gave it, whatever the second one's says.
func TestEffectIsThatOfTheManifestThatClaimed(t *testing.T) {
	t.Parallel()
	for claimed, code := range map[string]events.Code{"unsafe": events.CodeInterrupted, "idempotent": ""} {
		other := map[string]string{"unsafe": "idempotent", "idempotent": "unsafe"}[claimed]
		t.Run(claimed+" and "+other, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			one := turn("Work", "chat", "t", other, 0)
			r.publish(one, false)
			claim := r.deadWorker(claimed)
			claim.Meta.Digest = "of-other-manifests"
			_, err := r.journal().Create(t.Context(), claim)
			require.NoError(t, err)
			r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", other)}})
			require.Equal(t, code, r.await(one.TurnID).Code)
			require.Equal(t, map[string]int{"unsafe": 0, "idempotent": 1}[claimed], r.entered(one.TurnID))
			facts := r.settle(nil, one)
			require.Equal(t, "of-other-manifests", facts.Journal[0].Meta.Digest, "who looks sees that the manifests differ")
		})
	}
}

// F27: a turn runs while its manifest is replaced by one with another effect: it ends as it
// began, and the next one is bound anew.
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
	said := r.await(one.TurnID)
	require.Equal(t, "old", said.Payload, said.Content)
	require.Equal(t, "1", strconv.Itoa(said.Attempts))
}
