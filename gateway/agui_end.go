package gateway

import (
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/display"
	"github.com/oneturn/oneturn/internal/feed"
)

// When a run is over: once the chat has been quiet for a while, and nothing is left that it waits for. Two questions that
// are asked at the same time come as two events, so a run that ended with the first would name one of them.

// longest is how long a run waits for its next event at most before it looks at the clock again.
const longest = time.Minute

// stopGrace is how long a stopped run waits for the ends of its turns.
const stopGrace = 5 * time.Second

// terminalEvent returns the event that ends the run at a time, or nil and when to look again.
func (r *run) terminalEvent(now time.Time) (agui.Event, time.Duration) {
	if !r.stopAt.IsZero() {
		if r.connect || len(r.chat.OpenTurns()) == 0 || now.Sub(r.stopAt) >= stopGrace {
			return r.finished(agui.Cancelled(), nil), 0
		}
		return nil, stopGrace - now.Sub(r.stopAt)
	}
	if r.pending > 0 || len(r.decided) > 0 {
		return nil, longest
	}
	end, waits := r.terminalIfQuiet(now)
	if end == nil {
		return nil, waits
	}
	if quiet := r.quietFor(now); quiet < r.g.o.Settle && !r.complete {
		return nil, r.g.o.Settle - quiet
	}
	return end, 0
}

// quietFor is how long the chat has had no stored event. The clock of the server may be ahead.
func (r *run) quietFor(now time.Time) time.Duration {
	if r.chat.Empty() {
		return r.g.o.Settle
	}
	return max(0, now.Sub(r.last))
}

// terminalIfQuiet returns the event that would end the run now, or nil and how long it can wait at most for what is missing.
func (r *run) terminalIfQuiet(now time.Time) (agui.Event, time.Duration) {
	open := r.view.Questions(r.chat)
	if interrupts := r.view.Interrupts(r.chat); len(interrupts) > 0 {
		return r.finished(agui.Interrupted(interrupts...), nil), 0
	}
	if r.complete {
		return r.finished(agui.Success(), nil), 0
	}
	if left, waits := r.waitsForTurn(now); waits {
		if left > 0 {
			return nil, left
		}
		if !r.connect {
			text := "no agent has taken up the message, which is stored: start the orchestrator of this workflow"
			if len(r.unstored) > 0 {
				text = "no worker has stored the message: start a worker of this workflow; what is published need not be sent again"
			}
			return &agui.RunError{Code: "no_turn", Message: text}, 0
		}
	}
	if r.chat.Busy() {
		return nil, longest
	}
	if calls := openIn(open, display.ByFrontendTool); len(calls) > 0 {
		return r.finished(agui.Success(calls...), nil), 0
	}
	if prompts := openIn(open, display.ByComposer); len(prompts) > 0 {
		return r.finished(agui.Success(), map[string]any{
			"status": events.RunWaits, "reason": events.ReasonAwaitingInput, "tool_call_id": prompts[0],
		}), 0
	}
	return r.finished(agui.Success(), nil), 0
}

// waitsForTurn reports whether a message of the user has no turn and no reply yet, and how long to wait for it.
func (r *run) waitsForTurn(now time.Time) (left time.Duration, waits bool) {
	message, since := r.chat.Waiting()
	if len(r.unstored) > 0 {
		since = r.begun
	}
	return r.g.o.FirstTurn - now.Sub(since), message != "" || len(r.unstored) > 0
}

func (r *run) finished(o *agui.Outcome, result any) agui.Event {
	return &agui.RunFinished{ThreadID: r.in.ThreadID, RunID: r.in.RunID, Outcome: o, Result: result}
}

// completed handles chat.run_complete. An orchestrator that names no turn has ended its run; of a turn, the chat shows it.
func (r *run) completed(e *feed.Event) {
	var event struct {
		Data struct {
			Turn string `json:"turn"`
		} `json:"data"`
	}
	if json.Unmarshal(e.JSON, &event) == nil && event.Data.Turn == "" {
		r.complete = true
	}
}
