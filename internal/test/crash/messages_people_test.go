//go:build failpoints

package crash_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
)

// parkedRows are A10: the turn of a message is parked, and ended by an answer, its expiry, a cancel or a sweep. The worker that
// ends it hands off.
func parkedRows() []messageRow {
	rows := []messageRow{
		answeredRow("A10 parked and not acknowledged", failpoint.AfterPark, false),
		expiredRow("A10 expired", failpoint.AfterFinish),
		expiredRow("A10 expired and decided", failpoint.AfterDecision),
		cancelledRow("A10 cancelled", failpoint.AfterFinish),
		cancelledRow("A10 cancelled and decided", failpoint.AfterDecision),
	}
	for _, point := range []string{
		failpoint.AfterAnswer, failpoint.AfterResume, failpoint.Finish, failpoint.AfterFinish, failpoint.AfterDecision, failpoint.Handoff,
	} {
		rows = append(rows, answeredRow("A10 answered, "+point, point, true))
	}
	return append(rows, sweptRows()...)
}

// answeredRow is a row of a turn that an answer ends, given before or after the worker has died.
func answeredRow(name, point string, before bool) messageRow {
	act, answer := signalled(decision{Yes: true})
	w := messageAt(name, point+kill)
	w.shape, w.effect, w.ran = whole(stepInput{Ask: true}), "replay", 2
	w.people = []oneturntest.Rule{{Ask: "build", Acts: []oneturntest.Act{act}}}
	w.script = func(r *rig, first *process) {
		r.until("the turn is parked", r.parked)
		if before {
			close(answer)
		}
		require.True(r.t, r.wait(first, func() bool { return false }))
		r.forgotten()
		if !before {
			close(answer)
		}
	}
	return w
}

// expiredRow is a row of a turn whose question is not answered.
func expiredRow(name, point string) messageRow {
	w := messageAt(name, point+kill)
	w.shape, w.effect, w.ran, w.code = whole(stepInput{Ask: true, Within: 200}), "replay", 2, events.CodeExpired
	w.people = []oneturntest.Rule{}
	w.script = func(r *rig, first *process) { require.True(r.t, r.wait(first, func() bool { return false })) }
	return w
}

// cancelledRow is a row of a turn that is cancelled while it is parked.
func cancelledRow(name, point string) messageRow {
	w := messageAt(name, point+kill)
	w.shape, w.effect, w.code = whole(stepInput{Ask: true}), "replay", events.CodeCancelled
	w.people = []oneturntest.Rule{}
	w.script = func(r *rig, first *process) {
		r.until("the turn is parked", r.parked)
		_, err := r.client.Cancel(r.t.Context(), &oneturn.Cancel{TurnID: theTurn, Workflow: "Crash"})
		require.NoError(r.t, err)
		require.True(r.t, r.wait(first, func() bool { return false }))
	}
	return w
}

// sweptRows are rows of which all that is left to deliver is removed when the worker has died: a sweep finds the message, or its turn.
func sweptRows() []messageRow {
	rows := []messageRow{
		answeredRow("A10 answered and purged", failpoint.AfterAnswer, true),
		messageAt("A3 document changed and purged", failpoint.AfterApply+kill),
		messageAt("A6 response stored and purged", failpoint.AfterFinish+kill),
	}
	for i := range rows {
		rows[i].sweep = 100 * time.Millisecond
		rows[i].then = func(r *rig) {
			r.purge()
			next := r.start("")
			r.until("the handoff is stored", func() bool { return r.storedUnder(keyOfMessage().Public(events.RecordHandoff)) })
			r.wait(next, r.atRest())
		}
	}
	return rows
}

// TestParkedMessagesWhoseWorkerDies runs the rows of messages whose turn is parked, and those that a sweep completes.
func TestParkedMessagesWhoseWorkerDies(t *testing.T) {
	t.Parallel()
	runMessages(t, parkedRows())
}
