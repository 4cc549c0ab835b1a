package handlers

import (
	"context"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/program"
)

// How a step ends: its response is stored, and the one that counts is returned.

// stopped ends a step whose tool was stopped, unless it continues elsewhere.
func (p *programRun) stopped(s *step, out engine.Outcome) (program.End, error) {
	why := out.Stopped
	coded, ends := stopOf(why)
	switch {
	case errors.Is(why, ErrDraining) && s.run.Hold().Effect == string(bindings.EffectUnsafe) && out.Entered:
		coded = &events.Error{
			Code: events.CodeInterrupted, Msg: fmt.Sprintf("the worker stopped while tool %s ran: its effect may or may not have happened, and it is not run again", s.Binding.Tool),
		}
	case ends:
		coded = &events.Error{Code: coded.Code, Msg: p.stoppedText(s, coded, out.Entered)}
	case coded != nil && coded.Code != events.CodeStateCorrupt: // its host has ended the step, for what its tool does wrong
	default:
		return program.End{}, why
	}
	failed := engine.Failure(s.Binding.Tool, coded)
	failed.Entered, failed.Attempts, failed.Duration = out.Entered, out.Attempts, out.Duration
	if out.Entered {
		failed.EffectState = events.EffectInDoubt
	}
	return p.end(s, failed)
}

// stopOf returns how a step ends that was stopped because of why. It reports false if the step continues elsewhere.
func stopOf(why error) (coded *events.Error, ends bool) {
	ends = errors.As(why, &coded) && (coded.Code == events.CodeCancelled || coded.Code == events.CodeTimeout)
	return coded, ends
}

// end stores the response of a step and returns the end that counts.
func (p *programRun) end(s *step, out engine.Outcome) (program.End, error) {
	p.used.admitResult(s, &out)
	for {
		write, done := p.writing()
		response, err := p.storeEnd(write, s, out)
		expired := write.Err() != nil && p.turn.m.tools.Err() == nil
		done()
		switch {
		case err != nil && expired && !errors.Is(err, idempotency.ErrLost): // the lease has ended meanwhile: the journal decides
			continue
		case err != nil:
			return program.End{}, err
		}
		s.Hit(failpoint.AfterStepResponse)
		s.noteStored(&response)
		return p.endWith(s.args, &response)
	}
}

// writing returns the context of writes that count whichever worker has the lease.
func (p *programRun) writing() (context.Context, context.CancelFunc) {
	if p.turn.m.Held.Err() == nil {
		return context.WithCancel(p.turn.m.Held)
	}
	return afterLease(p.turn.m, 0)
}

// storeEnd stores the outcome of a step: its context changes, its payload, its response.
func (p *programRun) storeEnd(write context.Context, s *step, out engine.Outcome) (idempotency.Record, error) {
	hold := s.run.Hold()
	r := s.response()
	if err := p.h.outcomeResponse(write, s.turn, hold, out, &r); err != nil {
		return idempotency.Record{}, err
	}
	event, err := p.h.appendResponse(nil, &r)
	if err != nil {
		return idempotency.Record{}, err
	}
	response, err := p.h.Journal.EndStep(write, hold, event)
	if errors.Is(err, idempotency.ErrRefused) && r.Code != events.CodeTooLarge {
		failTooLarge(&r)
		if event, err = p.h.appendResponse(nil, &r); err != nil {
			return idempotency.Record{}, err
		}
		response, err = p.h.Journal.EndStep(write, hold, event)
	}
	if err != nil {
		return idempotency.Record{}, err
	}
	p.turn.program.newest.note(response.Seq)
	p.h.addStored(s.Key.App, len(event))
	if response.Meta.Nonce != hold.Nonce { // an earlier owner was faster: its changes of context variables count
		return response, p.h.mergeMissing(write, p.turn.m.tools, p.turn.m, &response)
	}
	if s.changes != nil && len(r.ContextKeys) > 0 {
		if err := p.h.mergeChanges(write, s.turn, s.changes); err != nil {
			return idempotency.Record{}, err
		}
	}
	return response, nil
}
