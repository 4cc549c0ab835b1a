//go:build failpoints

package crash_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// Times of turns that ask: parked soon and answered later, or answered while their run waits.
const (
	parksSoon  = 20 * time.Millisecond
	afterPark  = 250 * time.Millisecond
	parksLate  = time.Minute
	whileWaits = 20 * time.Millisecond
)

// parkable are the effects whose turns are parked.
var parkable = append([]string{"replay"}, again...)

// askedCell is a point of the path of a turn that asks.
type askedCell struct {
	cell

	name   string // if it is not the point
	parked bool   // turns are parked, and answered after that
}

func askedCells() []askedCell {
	in := func(point string) askedCell { return askedCell{cell: cell{point: point, effects: effects}} }
	parked := func(point string) askedCell {
		return askedCell{cell: cell{point: point, effects: parkable}, parked: true}
	}
	write := func(c askedCell) askedCell { // stored, and its writer dies before it knows
		c.unknown = true
		return c
	}
	resumed := parked(afterLastAnswer)
	resumed.name = "behind_resumed"
	ended := parked(failpoint.AfterFinish)
	ended.name = "after_finish_resumed"
	return []askedCell{
		in(failpoint.BeforeAsk), write(in(failpoint.Ask)), in(failpoint.AfterAsk),
		write(in(failpoint.Step)), write(in(failpoint.Show)),
		parked(failpoint.BeforePark), write(parked(failpoint.Park)), parked(failpoint.AfterPark),
		write(in(failpoint.Answer)), write(in(failpoint.Closed)), in(failpoint.AfterAnswer), write(in(failpoint.Wake)), in(failpoint.AfterWake),
		parked(failpoint.AfterResume),
		in(failpoint.BeforeTaken), write(in(failpoint.Taken)), in(failpoint.AfterTaken),
		in(afterLastAnswer), resumed, in(failpoint.AfterTool), ended,
	}
}

// rigOf is a rig whose turns come by the point of a cell.
func (c *askedCell) rigOf(t *testing.T, questions int) *rig {
	t.Helper()
	if c.parked {
		return newAsking(t, questions, parksSoon, yes(afterPark))
	}
	return newAsking(t, questions, parksLate, yes(whileWaits))
}

func (c *askedCell) title() string {
	if c.name != "" {
		return c.name
	}
	return c.point
}

// brief leaves a cell few effects, when each is to be struck once: what differs is whether the tool
// is entered again, and when.
func (c *askedCell) brief(n int) {
	if n <= 1 {
		c.effects = slices.DeleteFunc(slices.Clone(c.effects), func(e string) bool { return e != "replay" && e != "keyed" })
	}
}

// F01, F28: TestMatrixOfTurnsThatAsk kills the only worker at every point between a question and the outcome of its answer, until each effect was struck often enough.
func TestMatrixOfTurnsThatAsk(t *testing.T) {
	t.Parallel()
	for _, c := range askedCells() {
		t.Run(c.title(), func(t *testing.T) {
			t.Parallel()
			c.brief(*others)
			r := c.rigOf(t, 2)
			r.killAsked(c.cell, *others)
			r.settle()
		})
	}
}

// F01, F28: TestMatrixOfPythonToolsThatAsk is the same with tools in separate processes.
func TestMatrixOfPythonToolsThatAsk(t *testing.T) {
	t.Parallel()
	for _, c := range askedCells() {
		if c.point == afterLastAnswer || *others <= 1 && c.point != failpoint.AfterPark && c.point != failpoint.AfterTaken {
			continue // the failpoint of the Go tool is not in Python
		}
		t.Run(c.title(), func(t *testing.T) {
			t.Parallel()
			c.brief(*others)
			r := c.rigOf(t, 2)
			r.workflows = pythonAskers(t)
			r.killAsked(c.cell, *others)
			r.settle()
		})
	}
}

// F01: TestReplayToolWhoseWorkerDiesAfterItsLastAnswerIsInterrupted kills the worker between the last answer and the
// end of the tool, fifty times in a full run: what the tool did with the answers may have happened.
func TestReplayToolWhoseWorkerDiesAfterItsLastAnswerIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, parked := range []bool{false, true} {
		t.Run(fmt.Sprintf("parked=%t", parked), func(t *testing.T) {
			t.Parallel()
			c := askedCell{cell: cell{point: afterLastAnswer, effects: []string{"replay"}}, parked: parked}
			r := c.rigOf(t, 1)
			r.killAsked(c.cell, max(1, *hits*5/4)) // twice 25 times
			facts := r.settle()
			for _, turn := range r.struckTurns(afterLastAnswer) {
				require.Equal(t, events.CodeInterrupted, codeOf(t, facts, turn), turn)
			}
		})
	}
}

// F09: TestDroppedAcknowledgementsAndRequestsOfWhatBelongsToQuestions drops each kind of write every other time.
func TestDroppedAcknowledgementsAndRequestsOfWhatBelongsToQuestions(t *testing.T) {
	t.Parallel()
	points := []string{
		failpoint.Ask, failpoint.Answer, failpoint.Closed, failpoint.Taken, failpoint.Step, failpoint.Show,
	}
	for _, parked := range []bool{false, true} {
		for _, what := range []string{"drop_ack", "drop_req"} {
			t.Run(fmt.Sprintf("%s/parked=%t", what, parked), func(t *testing.T) {
				t.Parallel()
				c, points := askedCell{parked: parked}, append(slices.Clone(points), failpoint.Wake)
				effects := effects
				if parked {
					points[len(points)-1], effects = failpoint.Park, parkable
				}
				r := c.rigOf(t, 2)
				r.publish(3, effects, 1, false)
				r.wait(r.start(strings.Join(points, "="+what+"@odd;")+"="+what+"@odd"), r.atRest())
				for _, point := range points {
					require.Positive(t, r.struck(point)["-"], "%s was not reached", point)
				}
				r.settle()
			})
		}
	}
}

// killAsked starts workers that die at the point, until each effect of the cell was struck n times.
func (r *rig) killAsked(c cell, n int) {
	r.t.Helper()
	missing := func() []string {
		struck := r.struck(c.point)
		if c.unknown && struck["-"] >= n*min(2, len(c.effects)) {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(c.effects), func(e string) bool { return !c.unknown && struck[e] >= n })
	}
	deadline := time.Now().Add(4 * time.Minute)
	for i := 0; len(missing()) > 0; i++ {
		require.True(r.t, time.Now().Before(deadline), "point %s was not reached by %v", c.point, missing())
		if i%5 == 4 { // a process that was restarted strikes first, and leaves none for the effects that are missing
			r.wait(r.start(""), r.atRest())
		}
		p := r.start(fmt.Sprintf("%s=kill@%d", c.point, 1+i%2))
		begin, last := time.Now(), time.Time{}
		r.wait(p, func() bool {
			wanted := missing()
			if len(wanted) > 0 && time.Since(last) > 500*time.Millisecond && len(r.accepted)-r.answered() < 4*len(c.effects) {
				r.publish(1, wanted, 1, false)
				last = time.Now()
			}
			return len(wanted) == 0 || time.Since(begin) > 10*time.Second
		})
	}
}

// struckTurns are the keys of the turns that were struck at a point.
func (r *rig) struckTurns(point string) (turns []string) {
	r.t.Helper()
	f, err := os.Open(r.strikes())
	require.NoError(r.t, err)
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if fields := strings.Fields(scan.Text()); len(fields) == 4 && fields[0] == point {
			turns = append(turns, fields[2])
		}
	}
	return turns
}

// codeOf is the code in the response of a turn.
func codeOf(t *testing.T, facts *oneturntest.Facts, turn string) events.Code {
	t.Helper()
	for _, record := range facts.Journal {
		if k, _ := subjects.ParseKey(record.Key); k.String() == turn && k.Kind == events.KindToolResponse {
			m, err := events.Parse(record.Data)
			require.NoError(t, err)
			var response events.ToolResponse
			require.NoError(t, m.As(&response))
			return response.Code
		}
	}
	require.Fail(t, "no response", turn)
	return ""
}

// pythonAskers is [pythonTools] with tools that ask.
func pythonAskers(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	var manifest strings.Builder
	manifest.WriteString("agents:\n")
	for _, e := range effects {
		fmt.Fprintf(&manifest, "  Asker_%s: {model: Ask}\n", e)
	}
	manifest.WriteString("models:\n  Ask:\n    type: object\n    properties: {millis: {type: integer}, questions: {type: integer}, within: {type: integer}}\ntools:\n")
	for _, e := range effects {
		fmt.Fprintf(&manifest, "  - {name: ask_%[1]s, kind: python, agent: Asker_%[1]s, file: work.py, function: work, effect: %[1]s}\n", e)
	}
	const code = `import json, os, time
import oneturn

def note(phase, call, name=""):
    line = {"phase": phase, "name": name, "app": call.app_id, "chat": call.chat_id, "turn": call.turn, "key": call.idempotency_key,
            "token": call.fencing_token, "epoch": call.epoch, "pid": os.getpid(), "ns": time.time_ns()}
    fd = os.open(os.environ["CRASH_LEDGER"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(fd, (json.dumps(line) + "\n").encode())
    os.close(fd)

async def work(millis, questions, within):
    call = oneturn.call()
    note("enter", call)
    await oneturn.step("reserve", lambda: note("step", call, "reserve"))
    await oneturn.show("Plan")
    for n in range(1, questions + 1):
        note("ask", call, str(n))
        await oneturn.ask("Confirm", {"number": n, "at": time.time()})
        note("answered", call, str(n))
    note("exit", call)
    return "done"
`
	dir := filepath.Join(root, "Crash")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "tools"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), []byte(manifest.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tools", "work.py"), []byte(code), 0o600))
	return root
}
