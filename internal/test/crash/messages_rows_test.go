//go:build failpoints

package crash_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
)

// messageRows are the rows of messages whose turn asks no questions.
func messageRows() []messageRow {
	return slices.Concat(rowsOfTexts(), rowsOfTurns(), rowsOfHandoffs(), rowsOfCorrections(), rowsOfLostWrites())
}

// messageAt is a row of a message from which everything follows; its turn is not called, or has ended, when the worker dies.
func messageAt(name, fails string) messageRow {
	return messageRow{name: name, fails: fails, shape: whole(stepInput{})}
}

// shaped is a row of another message.
func shaped(name, fails string, s func(string) shape) messageRow {
	return messageRow{name: name, fails: fails, shape: s}
}

// rowsOfTexts are A1 to A4: the turn is not claimed.
func rowsOfTexts() []messageRow {
	return []messageRow{
		messageAt("A1 before the text", failpoint.BeforeText+kill),
		messageAt("A1 text stored and not confirmed", failpoint.Text+kill),
		messageAt("A2 text stored", failpoint.AfterText+kill),
		messageAt("A2 document written and not confirmed", failpoint.Document+kill),
		shaped("A2 document written and not confirmed, without a turn", failpoint.Document+kill, plain),
		messageAt("A3 document changed", failpoint.AfterApply+kill),
		shaped("A3 document changed, without a turn", failpoint.AfterApply+kill, plain),
		messageAt("A3 first update stored and not confirmed", failpoint.Update+kill),
		messageAt("A3 first update stored", failpoint.AfterUpdate+kill),
		messageAt("A4 updates stored", failpoint.AfterUpdate+kill2),
		messageAt("A4 before the claim", failpoint.BeforeClaim+kill),
		shaped("A4 structured output stored and not confirmed", failpoint.Output+kill, structured),
	}
}

// rowsOfTurns are A5 and A6: the turn is claimed, up to the variables that its tool has changed.
func rowsOfTurns() []messageRow {
	// cut is a row whose tool is called when the worker dies, after it was entered so many times.
	cut := func(name, fails string, ran int, every bool) messageRow {
		w := messageAt(name, fails)
		w.cut, w.ran, w.every = true, ran, every
		return w
	}
	inside := cut("A5 in the tool", "", 1, true)
	inside.shape = whole(stepInput{Die: 1})
	return []messageRow{
		cut("A5 claim stored and not confirmed", failpoint.Claim+kill, 0, false),
		cut("A5 claimed", failpoint.AfterClaim+kill, 0, false),
		inside,
		cut("A5 returned", failpoint.AfterTool+kill, 1, true),
		messageAt("A5 response stored and not confirmed", failpoint.Finish+kill),
		cut("A6 change of the tool in the journal", failpoint.AfterDelta+kill, 1, false),
		cut("A6 change of the tool staged and not confirmed", failpoint.Document+kill2, 1, false),
		messageAt("A6 response stored", failpoint.AfterFinish+kill),
		messageAt("A6 change of the tool merged, next speaker decided, and not confirmed", failpoint.Document+"=kill@3"),
		messageAt("A6 change of the tool merged, next speaker decided", failpoint.AfterMerge+kill),
	}
}

// rowsOfHandoffs are A7: the turn, if there is one, has ended.
func rowsOfHandoffs() []messageRow {
	return []messageRow{
		messageAt("A7 decided", failpoint.AfterDecision+kill),
		shaped("A7 decided, without a turn", failpoint.AfterDecision+kill, plain),
		messageAt("A7 handoff stored and not confirmed", failpoint.Handoff+kill),
		shaped("A7 handoff stored and not confirmed, without a turn", failpoint.Handoff+kill, plain),
		messageAt("A7 acknowledged", failpoint.AfterAck+kill),
		decided("A7 call of the decider stored and not confirmed", failpoint.StepCall+kill),
		decided("A7 reply of the decider stored and not confirmed", failpoint.StepResponse+kill),
	}
}

// decided is a row of a message after which a model decides who speaks. It is asked once.
func decided(name, fails string) messageRow { return asks("judge", 1, shaped(name, fails, judged)) }

// asks is a row in which a model is asked so often.
func asks(model string, times int, w messageRow) messageRow {
	w.also = func(t *testing.T, r *rig, _ *oneturntest.Facts) {
		t.Helper()
		require.Equal(t, times, r.programs.models.calls(model), "calls of model %s", model)
	}
	return w
}

// rowsOfCorrections are A8 and A9: an output that does not fit is corrected once.
func rowsOfCorrections() []messageRow {
	row := func(name, fails string, asked int) messageRow {
		return asks("editor", asked, shaped(name, fails, corrected))
	}
	claimed := row("A9 turn of the correction claimed", failpoint.AfterClaim+kill, 1)
	claimed.cut = true
	return []messageRow{
		row("A8 output refused", failpoint.AfterFinish+kill, 1),
		row("A8 call of the correction stored and not confirmed", failpoint.StepCall+kill, 1),
		row("A8 model not asked", failpoint.BeforeCorrection+kill, 1),
		row("A8 model has replied", failpoint.AfterCorrectionReply+kill, 2),
		row("A9 reply stored and not confirmed", failpoint.StepResponse+kill, 1),
		row("A9 reply stored", failpoint.AfterCorrection+kill, 1),
		asks("editor", 1, shaped("A9 reply stored, without a tool", failpoint.AfterCorrection+kill, correctedOutput)),
		claimed,
		row("A9 response stored", failpoint.AfterFinish+kill2, 1),
	}
}

// rowsOfLostWrites are A1 to A9 for a worker that lives: of writes of each kind the first one is lost, or its confirmation, and
// every other one after it.
func rowsOfLostWrites() (rows []messageRow) {
	for name, of := range map[string]struct {
		shape  func(string) shape
		points []string
	}{
		"with a turn":       {whole(stepInput{}), []string{failpoint.Update, failpoint.Claim, failpoint.Finish}},
		"without a turn":    {plain, []string{failpoint.Update}},
		"structured output": {structured, []string{failpoint.Output}},
		"corrected":         {corrected, []string{failpoint.Update, failpoint.Claim, failpoint.Finish, failpoint.StepCall, failpoint.StepResponse}},
		"decider":           {judged, []string{failpoint.StepCall, failpoint.StepResponse}},
	} {
		points := slices.Concat(of.points, []string{failpoint.Text, failpoint.Document, failpoint.Handoff})
		for how, do := range map[string]string{"confirmations lost": "=drop_ack@odd", "writes lost": "=drop_req@odd"} {
			w := shaped("A1 to A9 "+name+", "+how, strings.Join(points, do+";")+do, of.shape)
			w.lives = true
			rows = append(rows, w)
		}
	}
	return rows
}
