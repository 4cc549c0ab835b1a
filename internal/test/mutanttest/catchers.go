//go:build mutants

package mutanttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/mutant"
)

// violation is how a broken invariant stands in the output of a test.
var violation = regexp.MustCompile(`(?m)^.*: (?:after \[.*\]: )?(I\d+ .*)$`)

// Catcher is the test that has to fail when a fault is planted.
type Catcher struct {
	Suite string // chaos or crash
	Run   string // its name, as -test.run takes it
	Args  []string
}

// Catchers returns the test for each fault of package mutant. It is the shortest one whose
// faults bring the planted one to light for sure.
func Catchers() map[mutant.Name]Catcher {
	chaos := func(scenario string) Catcher {
		return Catcher{"chaos", "^TestChaos$/^round-1$/^" + scenario + "$", []string{"-chaos.seed=1"}}
	}
	crash := func(run string) Catcher { return Catcher{"crash", run, []string{"-crash.hits=1"}} }
	const storm = "duplicates-resumes-cancels"
	return map[mutant.Name]Catcher{
		mutant.NoIntent:              chaos(storm),
		mutant.MarkAfterRun:          chaos(storm),
		mutant.ReadDecides:           chaos(storm),
		mutant.DedupeWindowOnly:      chaos(storm),
		mutant.RejectOtherKey:        chaos(storm),
		mutant.ResumeTakesHeld:       chaos(storm),
		mutant.AckBeforePublish:      crash("^TestWorkerThatEndsBeforeItsResultsAreStoredLeavesTheMessages$"),
		mutant.UnfencedTerminal:      chaos("pause-in-tool-past-its-lease"),
		mutant.MsgIDDecides:          crash("^TestToolRunsAsOftenAsItsEffectAllowsWhenSignsOfLifeAreLost$"),
		mutant.UnknownIsSuccess:      crash("^TestDroppedAcknowledgementsAndRequestsOfEveryWrite$/^claim$/^drop_req$"),
		mutant.NoReaper:              crash("^TestMatrixKillAtEveryPointOfThePathKeepsThePromise$/^after_claim$"),
		mutant.TakeoverIgnoresEffect: crash("^TestMatrixKillAtEveryPointOfThePathKeepsThePromise$/^in_tool$"),
		mutant.ScanFromClaim:         crash("^TestCancelStoredBeforeTheClaimHoldsForTheNextOwner$"),
		mutant.ParkWithoutWakeKey:    crash("^TestAnswerThatComesWhileItsOwnerIsAboutToParkIsNotLost$"),
		mutant.ContinueWithoutLook:   crash("^TestAnswerThatComesBetweenTwoEpochsOfAnOwnerIsNotLost$"),
		mutant.ResumeSeqIsDuplicate:  crash("^TestMatrixOfTurnsThatAsk$/^after_resume$"),
		mutant.TakeoverWithoutSeal:   crash("^TestOwnerThatHasLostItsTurnDoesNotParkIt$"),
		mutant.WakeWithoutReread:     crash("^TestTurnThatEndsWhileItIsTakenOverIsNotRunAgain$"),
		mutant.AnswerUnvalidated:     crash("^TestAnswerThatDoesNotFitIsRefusedAndTheNextOneStands$"),
	}
}

// CatchMutants runs the catchers of a suite, which has to be that of this test binary: each
// first as it is, which has to pass, then with its fault planted, which has to end in a
// violation. A run that fails in another way proves nothing.
func CatchMutants(t *testing.T, suite string) {
	t.Helper()
	catchers := Catchers()
	for _, name := range mutant.All() {
		if slices.Contains(mutant.OfSchedules(), name) {
			continue
		}
		require.Contains(t, catchers, name, "nothing catches it")
		if c := catchers[name]; c.Suite == suite {
			t.Run(string(name), func(t *testing.T) {
				t.Parallel()
				out, err := runAgain(t, name, c)
				found := violation.FindSubmatch(out)
				require.Error(t, err, "not caught by %s", c.Run)
				require.NotNil(t, found, "%s failed, but not by a violation:\n%s", c.Run, out)
				t.Logf("caught by %s: %s", c.Run, found[1])
			})
		}
	}
	sound := map[string]bool{}
	for _, c := range catchers {
		if c.Suite == suite && !sound[c.Run] {
			sound[c.Run] = true
			t.Run("without/"+c.Run, func(t *testing.T) {
				t.Parallel()
				out, err := runAgain(t, "", c)
				require.NoError(t, err, "without a planted fault:\n%s", out)
			})
		}
	}
}

// runAgain runs a test of this binary with a fault planted, "" for none.
func runAgain(t *testing.T, name mutant.Name, catcher Catcher) ([]byte, error) {
	t.Helper()
	const limit = 2 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(ctx, self, append([]string{"-test.count=1", "-test.timeout=" + limit.String(), "-test.run=" + catcher.Run}, catcher.Args...)...)
	c.Env = append(os.Environ(), mutant.Variable+"="+string(name))
	out, err := c.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s: %w", catcher.Run, err)
	}
	return out, nil
}
