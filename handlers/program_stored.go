package handlers

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/program"
)

// The record that has the program of a call: it is created before the first step, and a worker that continues the turn runs the
// program of that record.

// stored returns the program as it is stored: what an earlier owner has stored, else the one that is compiled from the arguments of
// the call. A program without steps is not stored.
func (p *programRun) stored(ctx context.Context) (*flow.Program, error) {
	var record *idempotency.Record
	if before := p.d.Turn.CallOf(p.own.Key); before != nil {
		record = before.Program
	}
	if record == nil {
		compiled, err := p.compiled(ctx)
		if err != nil || len(compiled.Steps) == 0 {
			return compiled, err
		}
		event, err := p.startedEvent(compiled)
		if err != nil {
			return nil, err
		}
		stored, err := p.h.Journal.StoreProgram(p.lease(), p.run.Hold(), event)
		if err != nil {
			return nil, err
		}
		p.h.addStored(p.own.Key.App, len(event))
		p.turn.program.newest.note(stored.Seq)
		p.own.Hit(failpoint.AfterProgram)
		if hold := p.run.Hold(); stored.Meta.Nonce == hold.Nonce && p.copies == nil { // what was compiled is what is stored
			return compiled, nil
		}
		record = &stored
	}
	return p.decodeStarted(record)
}

// compiled returns the program of the arguments of the call; of a retry, as the turn that it retries has run it.
func (p *programRun) compiled(ctx context.Context) (*flow.Program, error) {
	if before, err := p.ranBefore(ctx); before != nil || err != nil {
		return before, err
	}
	compiled, ask, err := p.compile()
	switch {
	case ask != nil && p.inPlanned:
		return nil, planner.Recursion(p.compiler.Kind())
	case ask != nil:
		return p.planned(ctx, ask)
	}
	return compiled, err
}

// compile compiles the arguments of the call, unless that was done before the turn was claimed.
func (p *programRun) compile() (*flow.Program, *flow.Request, error) {
	if of := p.own.program; of != nil && of.compiled != nil {
		return of.compiled.program, of.compiled.ask, nil
	}
	return p.compiler.Compile(p.own.args)
}

// startedEvent is the event of the record that has the program.
func (p *programRun) startedEvent(compiled *flow.Program) ([]byte, error) {
	t := p.own
	data, err := program.Data(compiled)
	if err != nil {
		return nil, err
	}
	e := &events.PlanStarted{
		Kind: events.KindPlanStarted, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolName: t.Binding.Tool, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID, WorkflowName: t.Workflow,
		Payload: program.Payload(compiled),
	}
	if _, err := events.Decode(data); err != nil { // as the next owner does
		return nil, unstorableProgram(err)
	}
	stored, err := p.h.shrink(p.lease(), p.turn.m.tools, t.Key, events.RecordProgram, data, data)
	if err != nil {
		return nil, err
	}
	if e.ProgramData = events.JSONOf(stored); len(data) != len(e.ProgramData) { // in a blob: what is drawn has to fit as well
		omitArguments(e)
	}
	if err := p.storeCopies(e); err != nil {
		return nil, err
	}
	event, err := events.Encode(events.KindPlanStarted, e, p.h.Now())
	if err == nil {
		return event, nil
	}
	omitArguments(e) // the program and what is drawn of it may have too many values together
	if event, err = events.Encode(events.KindPlanStarted, e, p.h.Now()); err != nil {
		return nil, unstorableProgram(err)
	}
	return event, nil
}

// omitArguments leaves out what is only for those who draw the program.
func omitArguments(e *events.PlanStarted) {
	for i := range e.Payload.Steps {
		e.Payload.Steps[i].Arguments = map[string]any{}
	}
}

// unstorableProgram is why a program ends that is valid and that no record can hold.
func unstorableProgram(err error) error {
	what := err.Error()
	if syntax, ok := errors.AsType[*events.SyntaxError](err); ok {
		what = syntax.Reason
	}
	return &events.Error{Code: events.CodeTooLarge, Op: "program", Msg: "the program cannot be stored: " + what, Err: err}
}

// decodeStarted returns the program of a record.
func (p *programRun) decodeStarted(record *idempotency.Record) (*flow.Program, error) {
	e, err := events.ReadPlanStarted(record.Data)
	if err != nil {
		return nil, damaged(record.Key)
	}
	tree, err := events.Decode(e.ProgramData)
	if err != nil {
		return nil, damaged(record.Key)
	}
	reading, done := p.reading()
	defer done()
	object, err := p.h.Blobs.Object(reading, p.own.Key, events.RecordProgram, tree)
	if err != nil {
		return nil, damagedBy(err)
	}
	stored, err := flow.DecodeProgram(events.JSONOf(object))
	if err != nil {
		return nil, damaged(record.Key)
	}
	return stored, p.readCopies(reading, e, record.Key)
}
