package handlers

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// progressEvery is the least time between two words of a call on its progress.
const progressEvery = 200 * time.Millisecond

// progress thins out what a call says of its progress: the newest word always gets out. It is
// guarded by the mutex of the run.
type progress struct {
	last  time.Time
	next  []byte // what is to be said when the timer ends
	timer *time.Timer
}

// Progress implements [tools.Host].
func (d *desk) Progress(ctx context.Context, p tools.Progress) error {
	if ctx.Err() != nil {
		return d.stopped(ctx)
	}
	r := d.run
	if err := r.closed(d); err != nil {
		return err
	}
	event, err := r.progressEvent(p)
	if err != nil {
		return err
	}
	r.touch()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		return r.over
	}
	r.progress.say(r, event)
	return nil
}

func (r *run) progressEvent(p tools.Progress) ([]byte, error) {
	t := r.t
	e := &events.ToolProgress{
		Kind: events.KindToolProgress, ID: t.callID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolName: p.Tool, ToolCallID: t.callID, Corr: p.Corr, WorkflowName: t.Workflow,
		ProgressPercent: events.Percent(p.Percent), StatusMessage: events.Clip(p.Message),
	}
	if e.ToolName == "" {
		e.ToolName = t.binding.Tool
	}
	if e.Corr == "" {
		e.Corr = t.callID
	}
	return events.Encode(events.KindToolProgress, e, r.h.Now())
}

func (p *progress) say(r *run, event []byte) {
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

func (p *progress) flush(r *run) {
	if p.next != nil {
		r.live(events.KindToolProgress, p.next)
		p.last, p.next = time.Now(), nil
	}
}

// close says the last word.
func (p *progress) close(r *run) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.flush(r)
}

// live publishes an event that is not stored. It is at most once, so a failure is nobody's.
func (r *run) live(kind string, event []byte) {
	if err := r.h.Live(r.h.Space.Live(r.t.App, r.t.Chat, kind), event); err != nil {
		r.h.Logger.Debug("a live event could not be published", "kind", kind, "chat", r.t.Chat, "turn", r.t.callID, "err", err)
	}
}
