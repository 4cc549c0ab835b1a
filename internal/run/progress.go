package run

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// progressEvery is the shortest time between two progress events of a call.
const progressEvery = 200 * time.Millisecond

// progress limits the rate of a call's progress events: the newest one is always published. It is guarded by the
// mutex of the run.
type progress struct {
	last  time.Time
	next  []byte // the event to publish when the timer ends
	timer *time.Timer
}

// Progress implements [tools.Host].
func (h *host) Progress(ctx context.Context, p tools.Progress) error {
	if ctx.Err() != nil {
		return h.stopped(ctx)
	}
	r := h.run
	if err := r.refuses(h); err != nil {
		return err
	}
	event, err := r.progressEvent(p)
	if err != nil {
		return err
	}
	r.touch()
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.ended(); why != nil {
		return why
	}
	r.progress.publish(r, event)
	return nil
}

func (r *Run) progressEvent(p tools.Progress) ([]byte, error) {
	t := r.t
	e := &events.ToolProgress{
		Kind: events.KindToolProgress, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolName: p.Tool, ToolCallID: t.CallID, Corr: p.Corr, WorkflowName: t.Workflow,
		ProgressPercent: events.Percent(p.Percent), StatusMessage: events.Clip(p.Message),
	}
	if e.ToolName == "" {
		e.ToolName = t.Binding.Tool
	}
	if e.Corr == "" {
		e.Corr = t.CallID
	}
	return events.Encode(events.KindToolProgress, e, r.cfg.Now())
}

// publish publishes an event now, or when the shortest time since the last one is over.
func (p *progress) publish(r *Run, event []byte) {
	now := time.Now()
	wait := progressEvery - now.Sub(p.last)
	switch {
	case p.next != nil: // the timer runs
		p.next = event
	case wait <= 0:
		p.last = now
		r.live(events.KindToolProgress, event)
	default:
		p.next = event
		p.timer = time.AfterFunc(wait, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.progress.flush(r)
		})
	}
}

func (p *progress) flush(r *Run) {
	if p.next != nil {
		r.live(events.KindToolProgress, p.next)
		p.last, p.next = time.Now(), nil
	}
}

// close publishes the last event.
func (p *progress) close(r *Run) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.flush(r)
}
