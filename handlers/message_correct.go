package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// An output that cannot be used is corrected by the model that the manifests name for its agent, at most as often as the text of
// the message has it. Correction n has records under the message, like the call of a decider: its call is stored before the model
// is asked, its reply before it is used. The reply is read once, before it is stored, so that every worker continues with the
// same object. It makes a separate turn, whose key is the one of the message's turn with ~n; the handoff follows the last one. Whether a
// turn is corrected is in its claim, and from there in its response.
//
// An output that was cut off is not corrected: the model would write as much under the same limit.

// correction is a correction that is stored.
type correction struct {
	events.Correction

	failed *rejection   // why it has no object
	usage  events.Usage // of all corrections of the message so far
}

// correctionOf returns the number of the correction that has made a turn, and false if the turn is not of the message.
func (s *chatMessage) correctionOf(turn string) (n int, ok bool) {
	for n := range s.Corrections + 1 {
		if turn == s.CorrectedTurn(n) {
			return n, true
		}
	}
	return 0, false
}

// correctionsOf returns how often a model may be asked to correct a message in which found was read, or none because of err.
func correctionsOf(agent *bindings.Agent, e *events.AgentMessage, err error) int {
	const longest = len("~9") // of what is added to the key of the turn
	if cutOff(e.FinishReason, err) || len(e.Turn) > events.MaxIDBytes-longest {
		return 0
	}
	return agent.Corrections
}

// cutOff reports whether an output is not complete.
func cutOff(finishReason string, err error) bool {
	var unread *agentjson.Error
	return agentjson.Incomplete(finishReason) != "" || errors.As(err, &unread) && unread.Code == agentjson.Truncated
}

// correct runs the turn of a correction after the turn before has failed.
func (h *Handlers) correct(s *chatMessage, n int, failed *events.ToolResponse) inbound.Disposition {
	ctx := s.m.tools
	if err := h.lacksWorkflow(s); err != nil {
		return h.redeliver(s.m, "a message waits for a worker that has its workflow", err)
	}
	c, err := h.correction(ctx, s, n, feedbackIn(failed.Payload, failed.Content), failed.Usage)
	if err != nil {
		return h.redeliver(s.m, "a correction could not be stored", err)
	}
	data := c.StructuredOutput
	if c.failed != nil {
		data = c.Content
	}
	t := h.newTurnOf(s, s.CorrectedTurn(n), data, c.failed)
	t.CorrectionOf, t.usage, t.corrects = failed.Turn, c.cost(), n < s.Corrections && !c.Final
	s.turnDone = false
	d := h.afterTurn(s, t, h.admit(ctx, t))
	s.turnDone = true // what is left of the turn before is in this one
	return d
}

// correctOutput corrects the output of an agent that has a model and no tool. It returns the last correction; one that the model
// did not reply to fails with what is wrong with the output before.
func (h *Handlers) correctOutput(ctx context.Context, s *chatMessage) (*correction, error) {
	last := &correction{failed: rejectUnread(s.Unread)}
	for n := 1; n <= s.Corrections && last.failed != nil && !last.Final; n++ {
		c, err := h.correction(ctx, s, n, feedbackIn(last.failed.payload, last.failed.content), last.cost())
		if err != nil {
			return nil, err
		}
		if c.failed != nil && c.failed.code != events.CodeValidationFailed {
			c.failed.content, c.failed.payload = events.Clip(last.failed.content+" "+c.failed.content), last.failed.payload
		}
		last = c
	}
	return last, nil
}

// cost is what the corrections so far have cost, nil without any.
func (c *correction) cost() *events.Usage {
	if c.usage.Calls == 0 {
		return nil
	}
	return &c.usage
}

// correction returns correction n of a message: the stored one, else the model is asked. Used is what the corrections before have
// cost.
func (h *Handlers) correction(ctx context.Context, s *chatMessage, n int, feedback string, used *events.Usage) (*correction, error) {
	key := s.key.WithCall("c" + strconv.Itoa(n))
	stored, err := h.Journal.End(s.m.Held, key)
	former := err == nil && stored.Former(s.record.Seq) // of an earlier message with the id, whose text has expired
	if former || errors.Is(err, idempotency.ErrNotFound) {
		binding := h.Bindings().Corrector(s.WorkflowName, s.Agent)
		claimed, errClaim := h.isClaimedFor(s, n)
		notAsked := binding == nil && !claimed
		switch {
		case errClaim != nil:
			return nil, errClaim
		case claimed: // by that message, whose turn stands; or after a reply that another delivery has stored meanwhile
			stored, err = h.Journal.End(s.m.Held, key)
			notAsked = errors.Is(err, idempotency.ErrNotFound)
		case binding != nil:
			stored, err = h.askForCorrection(ctx, s, n, binding, feedback)
		}
		if notAsked { // the manifests have changed just now, or had when its turn was claimed
			return s.notAsked(used, events.CodeUnknownTool, "the manifests name no model for it any more"), nil
		}
	}
	switch {
	case err == nil:
		return h.storedCorrection(ctx, s, key, &stored, used)
	case errors.Is(err, events.ErrStateCorrupt), errors.Is(err, store.ErrBlobGone):
		return s.notAsked(used, events.CodeStateCorrupt, reason(err)), nil
	case store.Decided(err):
		return s.notAsked(used, events.CodeTooLarge, reason(err)), nil
	}
	return nil, err
}

// isClaimedFor reports whether the turn of correction n is claimed by the message.
func (h *Handlers) isClaimedFor(s *chatMessage, n int) (bool, error) {
	if s.Turn == "" {
		return false, nil
	}
	claims, err := h.Journal.Claims(s.m.Held, subjects.TurnKey(s.AppID, s.ChatID, s.RunID, s.CorrectedTurn(n)))
	if err != nil {
		return false, fmt.Errorf("read the claim of the turn of a correction: %w", err)
	}
	return messageOf(claims[0]) == s.key.Turn, nil
}

// notAsked is a correction that the model is not asked for.
func (s *chatMessage) notAsked(used *events.Usage, code events.Code, why string) *correction {
	return &correction{Correction: events.Correction{Final: true}, usage: used.Plus(events.Usage{}), failed: s.uncorrected(code, why)}
}

// askForCorrection asks the model, and returns the response that counts.
func (h *Handlers) askForCorrection(ctx context.Context, s *chatMessage, n int, binding *bindings.Binding, feedback string) (idempotency.Record, error) {
	failed := func(err error) (idempotency.Record, error) { return idempotency.Record{}, err }
	output, err := h.outputBefore(ctx, s, n)
	if err != nil {
		return failed(err)
	}
	agent := h.agentOf(s)
	asked := planner.Correction{Agent: s.Agent, Model: s.Model, Output: output, Feedback: feedback}
	if agent.Model != nil {
		asked.Schema = agent.Model.JSONSchema()
	}
	request := asked.Request()
	t := agentCall(s, "c"+strconv.Itoa(n))
	t.Binding = binding
	if err := h.storeAgentCall(ctx, t, s, request.Data); err != nil {
		return failed(err)
	}
	s.hit(failpoint.BeforeCorrection)
	out := h.promptAgent(ctx, t, &request)
	s.hit(failpoint.AfterCorrectionReply)
	if out.Stopped != nil {
		return failed(out.Stopped)
	}
	r, outcome, err := h.correctionResponse(ctx, s, t, &agent, &out)
	if err != nil {
		return failed(err)
	}
	stored, err := h.storeAgentResponse(t, s, r)
	if errors.Is(err, idempotency.ErrRefused) { // else it would be asked again with each delivery
		failTooLarge(r)
		outcome = correctionFailed
		stored, err = h.storeAgentResponse(t, s, r)
	}
	if err == nil {
		h.Metrics.Correction(binding, outcome)
		s.hit(failpoint.AfterCorrection)
	}
	return stored, err
}

// outputBefore returns the output that correction n is to correct: the one of the message, or the reply of the correction before.
func (h *Handlers) outputBefore(ctx context.Context, s *chatMessage, n int) (any, error) {
	switch {
	case n == 1 && s.Unread != nil:
		return h.contentOf(ctx, s)
	case n == 1:
		return h.outputOf(ctx, s)
	}
	key := s.key.WithCall("c" + strconv.Itoa(n-1))
	stored, err := h.Journal.End(s.m.Held, key)
	if err != nil {
		return nil, err
	}
	before, err := h.storedCorrection(ctx, s, key, &stored, nil)
	if err != nil {
		return nil, err
	}
	return before.Content, nil
}

// agentOf returns the agent of a message; one whose workflow is gone has its name only.
func (h *Handlers) agentOf(s *chatMessage) bindings.Agent {
	agent, err := h.Bindings().Agent(s.WorkflowName, s.Agent)
	if err != nil {
		agent = bindings.Agent{Workflow: s.WorkflowName, Name: s.Agent, ModelName: s.Model}
	}
	return agent
}

// feedbackIn returns the feedback in the payload of a failure, else the text about it.
func feedbackIn(payload any, text string) string {
	switch p := payload.(type) {
	case map[string]any:
		if feedback, ok := p["feedback"].(string); ok && feedback != "" {
			return feedback
		}
	case json.RawMessage:
		if decoded, err := events.Decode(p); err == nil {
			return feedbackIn(decoded, text)
		}
	}
	return text
}
