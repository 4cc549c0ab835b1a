package retry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// Record is a public record of a turn.
type Record struct {
	Kind  string // of its event
	Seq   uint64
	Event []byte
}

// Open returns a value that a record of a call holds, out of its blob if it is in one. Call is the id of the call in the
// program, "" for the turn itself; kind is the one of the record. Without it, only the claim and the end of the turn are read, and
// whether it has stored a program.
type Open func(call, kind string, stored any) (any, error)

// Past is a turn as its records show it.
type Past struct {
	Claim *events.ToolCall     // nil if the turn has no records
	End   *events.ToolResponse // nil while it has not ended

	open     Open
	stored   bool                     // it has stored its program
	programs map[string]*flow.Program // by the prefix of the ids of their calls: "" for the program of the turn
	calls    map[string]*call         // by id
	copies   *Copies                  // that the turn has made itself, as a retry
}

// call has the records of a call.
type call struct {
	called *events.ToolCall
	end    *events.ToolResponse
	seq    uint64 // of the end
}

// Read reads the records of a turn, in the order of their sequences. It fails with code state_corrupt if one cannot be read.
func Read(records []Record, open Open) (*Past, error) {
	p := &Past{open: open, programs: map[string]*flow.Program{}, calls: map[string]*call{}, copies: &Copies{}}
	for i := range records {
		err := p.add(&records[i])
		if opening, ok := errors.AsType[*openError](err); ok {
			return nil, opening.err
		}
		if err != nil {
			return nil, &events.Error{Code: events.CodeStateCorrupt, Op: "retry", Msg: fmt.Sprintf("a record (%s) of the turn to retry cannot be read", records[i].Kind), Err: err}
		}
	}
	return p, nil
}

func (p *Past) add(r *Record) error {
	switch r.Kind {
	case events.KindToolCall:
		e, err := events.ReadCall(r.Event)
		switch {
		case err != nil:
			return err
		case e.InteractionType != events.InteractionAutoTool: // a question or a surface
		case e.Step == "":
			p.Claim = e
		default:
			p.call(e.Step).called = e
		}
	case events.KindToolResponse:
		e, err := events.ReadResponse(r.Event)
		switch {
		case err != nil:
			return err
		case e.Step == "":
			p.End = e
		default:
			c := p.call(e.Step)
			c.end, c.seq = e, r.Seq
		}
	case events.KindPlanStarted, events.RecordProgram:
		e, err := events.ReadPlanStarted(r.Event)
		if err != nil {
			return err
		}
		return p.addProgram(e)
	}
	return nil
}

func (p *Past) addProgram(e *events.PlanStarted) error {
	outer, prefix := "", ""
	if p.Claim == nil {
		return errors.New("a program without the claim of its turn")
	}
	if e.ToolCallID != p.Claim.ToolCallID {
		id, ok := strings.CutPrefix(e.ToolCallID, events.StepID(p.Claim.ToolCallID, ""))
		if !ok {
			return fmt.Errorf("a program of call %.200q, which is not in the turn", e.ToolCallID)
		}
		outer, prefix = id, id+"#"
	}
	p.stored = p.stored || prefix == ""
	if p.open == nil {
		return nil
	}
	tree, err := p.opened(outer, events.RecordProgram, e.ProgramData)
	if err != nil {
		return err
	}
	if p.programs[prefix], err = flow.DecodeProgram(events.JSONOf(tree)); err != nil || prefix != "" || e.CopiedData == nil {
		return err
	}
	text, err := p.opened(outer, RecordCopies, e.CopiedData)
	if err != nil {
		return err
	}
	p.copies, err = Decode(text)
	return err
}

func (p *Past) opened(call, kind string, stored json.RawMessage) (any, error) {
	tree, err := events.Decode(stored)
	if err != nil {
		return nil, err
	}
	value, err := p.open(call, kind, tree)
	if err != nil {
		return nil, &openError{err}
	}
	return value, nil
}

// openError is an error of [Open].
type openError struct{ err error }

// Error implements error.
func (e *openError) Error() string { return e.err.Error() }

func (p *Past) call(id string) *call {
	c := p.calls[id]
	if c == nil {
		c = &call{}
		p.calls[id] = c
	}
	return c
}

// Program returns the program of the turn, nil if it has not stored one.
func (p *Past) Program() *flow.Program { return p.programs[""] }

// PlannerReply returns what the planner of the program has replied, nil if no reply is stored.
func (p *Past) PlannerReply() (reply any, err error) {
	c := p.calls[events.StepPlan]
	if c == nil || c.end == nil || !c.end.Success {
		return p.copies.Planner, nil
	}
	return p.open(events.StepPlan, events.KindToolResponse, c.end.Payload)
}

// RanNothing returns the key of the turn that the turn was to retry, if the turn was refused, or has ended before its program was stored.
// That one is to be retried instead: it has the results of the calls that have finished.
func (p *Past) RanNothing() (resumeOf string, ok bool) {
	if p.Claim == nil || p.Claim.ResumeOf == "" {
		return "", false
	}
	failed := p.End != nil && p.End.Status != events.StatusOK
	return p.Claim.ResumeOf, p.Claim.Rejected || failed && !p.stored
}

// Check reports why the turn cannot be retried: an error with code bad_args that names what to do. Key is the turn key by which the
// retry names it.
func (p *Past) Check(key string) error {
	var why string
	plain, qualified := events.Unqualified(key)
	switch {
	case p.Claim == nil && qualified:
		return refusal(fmt.Sprintf("no turn has the key %q: if that is the tool_call_id of a turn with a run id, name turn %q and the run id; "+
			"a turn under a reused key (on_key_reuse: run) cannot be retried: send it again under a new turn key", key, plain))
	case p.Claim == nil:
		return refusal("the turn to retry has no records: check app, chat, run and turn; the journal keeps records for its retention time only")
	case p.End == nil:
		why = "has not ended: wait for its response, or cancel it first"
	case p.ranNothing():
		why = fmt.Sprintf("was a retry that ran nothing (%s): retry %q instead, under a new turn key", p.End.Code, p.Claim.ResumeOf)
	case p.Claim.Rejected:
		why = fmt.Sprintf("was refused and ran nothing (%s): send a corrected turn under a new turn key", p.Claim.Code)
	case p.Claim.Effect != events.EffectProgram:
		why = fmt.Sprintf("is one call of tool %s, not a program, so nothing of it can be kept: send it again under a new turn key, once it is known what it has done", p.Claim.ToolName)
	case p.End.Success:
		why = "has succeeded: nothing is left to run"
	case p.End.Status == events.StatusOK:
		why = "has run to its end, and its failures were tolerated, so nothing is left to run: send a corrected turn with correction_of"
	default:
		return nil
	}
	return refusal(fmt.Sprintf("turn %q %s", p.Claim.Turn, why))
}

func (p *Past) ranNothing() bool {
	_, nothing := p.RanNothing()
	return nothing
}

func refusal(text string) *events.Error {
	return &events.Error{Code: events.CodeBadArgs, Op: "retry", Msg: text}
}

// Arguments returns the arguments of the turn, nil if they are not an object.
func (p *Past) Arguments() (map[string]any, error) {
	args, err := p.open("", events.KindToolCall, p.Claim.Payload.ToolArgs)
	if err != nil {
		return nil, err
	}
	object, _ := args.(map[string]any)
	return object, nil
}
