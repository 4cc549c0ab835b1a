package query

// Pages of the steps of a program: those that were called, in the order of their calls, and before them those that a retry has
// copied, which are in the record of the program only. What a step costs to read does not depend on the others; a page reads the
// calls and responses of 16 steps.

import (
	"context"
	"strings"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxStepQuestions bounds the open questions that a page of steps names.
const maxStepQuestions = 4 * pageRecords

// Steps returns a page of the steps of a turn. It fails as [Reader.TurnEvents] does.
func (r *Reader) Steps(ctx context.Context, app string, q *api.TurnRequest) (*api.Page, error) {
	turns, err := r.callsOf(ctx, app, q)
	if err != nil {
		return nil, err
	}
	lists, err := r.readOn(ctx, app, turns, func(turn subjects.Key) []string {
		calls := turn.WithCall(idempotency.AnyToken)
		return []string{calls.Public(events.RecordCall), calls.Public(events.RecordProgram)}
	}, q.From)
	if err != nil {
		return nil, err
	}
	page, found, called := &api.Page{Records: []api.Record{}}, []*idempotency.Record{}, 0
	err = inOrder(lists, func(rec *idempotency.Record, _ *recordList) bool {
		key, ok := subjects.ParseKey(rec.Key)
		switch {
		case rec.Seq < q.From, !ok, key.Kind == events.RecordCall && key.Call == subjects.SingleCall:
			return true
		case called == pageRecords:
			page.Next = rec.Seq
			return false
		case key.Kind == events.RecordCall:
			called++
		}
		found = append(found, rec)
		return true
	})
	if err != nil {
		return nil, err
	}
	page.Steps, err = r.readSteps(ctx, app, found)
	return page, err
}

// readSteps returns the states of the steps whose calls were read, and of those that the programs which were read have copied.
func (r *Reader) readSteps(ctx context.Context, app string, read []*idempotency.Record) ([]api.Step, error) {
	byTurn := map[subjects.Key][]*idempotency.Record{}
	for _, rec := range read {
		key, _ := subjects.ParseKey(rec.Key)
		byTurn[key.OfTurn()] = append(byTurn[key.OfTurn()], rec)
	}
	turns := map[subjects.Key]*idempotency.Turn{}
	for key, records := range byTurn {
		names, err := r.namesOfSteps(ctx, app, key, records)
		if err != nil {
			return nil, err
		}
		found, err := r.store.LastOf(ctx, names)
		if err != nil {
			return nil, err
		}
		turns[key] = idempotency.TurnOf(key, append(found, records...))
	}
	steps := make([]api.Step, 0, len(read))
	for _, rec := range read {
		key, _ := subjects.ParseKey(rec.Key)
		turn := turns[key.OfTurn()]
		switch call := turn.CallOf(key.Key); {
		case call == nil: // another turn was claimed under the key since
		case key.Kind == events.RecordCall:
			steps = append(steps, StepOf(turn, call))
		case call.Program != nil && call.Program.Seq == rec.Seq:
			steps = append(steps, copiedSteps(turn, call)...)
		}
	}
	return steps, nil
}

// copiedSteps returns the steps that a retry has copied of the program that a call runs.
func copiedSteps(t *idempotency.Turn, of *idempotency.Call) (steps []api.Step) {
	e, err := events.ReadPlanStarted(of.Program.Data)
	if err != nil {
		return nil
	}
	prefix, depth := "", 1
	if of != &t.Call {
		prefix = stepID(of) + "#"
		depth += strings.Count(prefix, "#")
	}
	for i := range e.Payload.Steps {
		if s := &e.Payload.Steps[i]; s.Copied != nil {
			steps = append(steps, copiedStep(prefix, depth, s))
		}
	}
	return steps
}

// namesOfSteps returns the names of the records that decide the states of steps of a turn.
func (r *Reader) namesOfSteps(ctx context.Context, app string, turn subjects.Key, read []*idempotency.Record) ([]string, error) {
	names := []string{turn.Public(events.RecordCall), turn.Public(events.RecordResponse), turn.Public(events.RecordCancel)}
	steps := map[subjects.Key]bool{turn: false} // and whether their calls were read
	for _, rec := range read {
		key, _ := subjects.ParseKey(rec.Key)
		steps[key.Key] = steps[key.Key] || key.Kind == events.RecordCall
	}
	for key, called := range steps {
		switch {
		case key == turn:
			continue
		case !called: // only its program
			names = append(names, key.Public(events.RecordCall))
		}
		names = append(names, key.Public(events.RecordResponse))
	}
	all, err := r.namesOfTurn(app)(ctx, turn.WithCall(idempotency.AnyToken).Public(idempotency.AnyToken, idempotency.AnyToken))
	if err != nil {
		return nil, err
	}
	acked, n := map[string]bool{}, 0
	for _, name := range all {
		acked[name.Name()] = name.Kind == events.RecordAck
	}
	for _, ask := range all {
		ack := ask.Public(events.RecordAck, ask.ID)
		if ask.Kind != events.RecordAsk || !steps[ask.Key] || acked[ack] || n == maxStepQuestions {
			continue
		}
		n++
		names = append(names, ask.Name(), ack, ask.Key.Private(events.RecordAnswer, ask.ID))
	}
	return names, nil
}

// StepOf returns the state of a step of a turn, see [idempotency.Turn.Steps].
func StepOf(t *idempotency.Turn, c *idempotency.Call) api.Step {
	s := api.Step{Call: stepID(c), State: api.StepRunning}
	if c.Called != nil {
		s.CalledAt, s.Effect = c.Called.Time.UTC(), c.Called.Meta.Effect
		if e, err := events.ReadCall(c.Called.Data); err == nil {
			s.ToolCallID, s.Tool, s.Depth = e.ToolCallID, e.ToolName, e.Depth
		}
	}
	asked := c.Questions()
	for i := range asked {
		q := ReadQuestion(asked[i].Ask, false)
		if q == nil {
			continue
		}
		if s.ToolCallID == "" { // an internal call that only asks
			s.ToolCallID, _, _ = events.ParseQuestionID(q.ToolCallID)
		}
		if StateOf(t, &asked[i]) == api.Open {
			s.State, s.OpenQuestions = api.StepWaiting, append(s.OpenQuestions, q.ToolCallID)
		}
	}
	switch {
	case c.Response != nil:
		s.State, s.EndedAt, s.OpenQuestions = api.StepEnded, c.Response.Time.UTC(), nil
		e, err := events.ReadResponse(c.Response.Data)
		if err != nil {
			s.Code = events.CodeStateCorrupt
			break
		}
		s.Success, s.Code, s.Attempts, s.DurationMS = e.Success, e.Code, e.Attempts, e.DurationMS
		s.ToolCallID, s.Tool, s.Depth = e.ToolCallID, e.ToolName, e.Depth
	case t.Response != nil:
		s.State = api.StepClosed
	}
	return s
}

// stepID returns the id of a step in its program, as far as it is known.
func stepID(c *idempotency.Call) string {
	if _, ok := subjects.StepOfCall(c.Key.Call); !ok && c.Called != nil { // its id is long
		if e, err := events.ReadCall(c.Called.Data); err == nil && e.Step != "" {
			return e.Step
		}
	}
	return subjects.StepOf(c.Key.Call)
}
