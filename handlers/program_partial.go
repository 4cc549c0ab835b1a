package handlers

import (
	"context"
	"errors"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/subjects"
)

// A turn of a program that ends while no worker runs it (a cancel of a parked turn, the end of its life, too many takeovers), or that
// its run could not report, has what its records hold in the payload of its response.

// reportSteps sets the payload of a response to the results of the steps of a turn that ends, as its records have them. An error means
// that they could not be read now.
func (h *Handlers) reportSteps(ctx context.Context, t *turn, held *idempotency.Turn, r *events.ToolResponse) error {
	if t.Binding == nil {
		t.Binding = h.Bindings().Bound(r.WorkflowName, r.Agent, r.ToolName)
	}
	p := &programRun{h: h, turn: t, own: t, d: idempotency.Decision{Turn: held}, held: ctx}
	r.DurationMS = 0
	payload, err := p.reported(r)
	if err != nil || payload == nil {
		return err
	}
	data := events.JSONOf(payload)
	r.Payload, err = h.shrink(ctx, t.m.tools, t.Key, events.KindToolResponse, data, data)
	if code := unstorable(t, err); err != nil && code != "" {
		r.Payload = failure(r.Code, r.Content)
		return nil
	}
	return err
}

// missesEnd reports whether the journal holds an end of a call of the program that is not in the payload of its response: an earlier owner has called
// it, and this worker has not entered it again.
func (t *turn) missesEnd(held *idempotency.Turn) bool {
	return t.program != nil && slices.ContainsFunc(t.program.withoutEnd, func(key subjects.Key) bool {
		c := held.CallOf(key)
		return c != nil && c.Response != nil
	})
}

// reported returns the payload of a program that ends without a run of it, nil if its kind is not known.
func (p *programRun) reported(r *events.ToolResponse) (any, error) {
	var coded *events.Error
	var stored *flow.Program
	var err error
	if record := p.d.Turn.Program; record != nil && record.Err == nil {
		stored, err = p.decodeStarted(record)
	}
	switch {
	case err != nil && !errors.As(err, &coded):
		return nil, err
	case stored == nil && (p.own.Binding == nil || p.own.Binding.Program == nil):
		return nil, nil //nolint:nilnil // nothing is known
	case stored == nil:
		payload := notRun(p.own, r.Code)
		payload["status"], payload["message"] = string(flow.StatusFailed), r.Content
		if r.Code == events.CodeCancelled {
			payload["status"] = string(flow.StatusCancelled)
		}
		return payload, nil
	}
	p.runner = &program.Runner{Program: stored, Ends: map[string]program.End{}}
	for _, call := range stored.Calls() {
		if copied := p.copies.Call(call.ID); copied != nil {
			p.runner.Ends[call.ID] = copiedEnd(copied)
			continue
		}
		if p.runner.Ends[call.ID], err = p.reportedEnd(p.d.Turn.CallOf(p.keyOf(call))); err != nil {
			return nil, err
		}
		if p.runner.Ends[call.ID].Seq == 0 {
			delete(p.runner.Ends, call.ID)
		}
	}
	e := p.runner.Result(string(r.Code), r.Content)
	if next := stored.Next(e.State); len(next.Start) == 0 && !next.Wait && r.Code != events.CodeCancelled {
		e.Code, e.Message = "", "" // its steps have decided
	}
	r.DurationMS = stored.Duration(e).Milliseconds()
	return p.payload(e), nil
}

// reportedEnd returns how a call has ended, the zero value if it was not called. Records that cannot be read fail the call.
func (p *programRun) reportedEnd(c *idempotency.Call) (program.End, error) {
	if c == nil || c.Response == nil {
		return program.End{}, nil
	}
	end, err := p.endOf(c.Called, c.Response)
	if coded, ok := errors.AsType[*events.Error](err); ok {
		return program.End{Seq: c.Response.Seq, Code: string(coded.Code), Outcome: flow.Outcome{Message: coded.Msg}}, nil
	}
	if err != nil {
		return program.End{}, err
	}
	return end, p.h.mergeMissing(p.lease(), p.turn.m.tools, p.turn.m, c.Response)
}
