package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// Cancel requests: for a turn, or for the turn of a call, a step or a question.

// cancelRequest names a turn of a chat.
type cancelRequest struct{ run, turn, toolCallID, reason string }

// readCancel reads a request that names a turn or a tool_call_id.
func readCancel(data map[string]any) (cancelRequest, error) {
	r := cancelRequest{
		run: textAt(data, "run_id"), turn: textAt(data, "turn", "turn_idempotency_key"), toolCallID: textAt(data, "tool_call_id", "call_id", "corr"),
		reason: textAt(data, "reason"),
	}
	if r.turn == "" && r.toolCallID == "" {
		return r, missingField("turn or tool_call_id")
	}
	return r, nil
}

// cancel is POST /api/chats/{app}/{chat}/cancel.
func (g *Gateway) cancel(c *call) error {
	body, err := g.readBody(c)
	if err != nil {
		return err
	}
	m, err := c.parse(body)
	if err != nil {
		return err
	}
	request, err := readCancel(m.Data)
	if err != nil {
		return err
	}
	a, err := g.requestCancel(c.r.Context(), c.id, c.target, request)
	if err != nil {
		return err
	}
	c.code = a.Code
	writeJSON(c.w, a.Status, a)
	return nil
}

// codeEnded is the code of a cancel request for a turn that has ended.
const codeEnded = "ended"

// requestCancel publishes a cancel request of a user for a turn that was claimed, unless the turn has ended: an end is final.
func (g *Gateway) requestCancel(ctx context.Context, id *auth.Identity, t auth.Target, r cancelRequest) (ack, error) {
	a := published("the cancel request is stored: the turn ends with chat.tool_response")
	a.Turn, a.ToolCallID = r.turn, r.toolCallID
	if _, err := g.mayUseChat(ctx, id, t); err != nil {
		return ack{}, err
	}
	claim, err := g.claimOf(ctx, t, r)
	if errors.Is(err, idempotency.ErrNotFound) {
		return ack{}, refuse(http.StatusNotFound, codeUnknown, "there is no such turn in this chat: if it was published just now, try again; if it has a run_id, name that too")
	}
	if err != nil {
		return ack{}, err
	}
	called, err := events.ReadCall(claim.Data)
	if err != nil {
		return ack{}, unavailable(err)
	}
	t.Workflow = called.WorkflowName
	if _, err := id.Resolve(t); err != nil {
		return ack{}, err
	}
	if ended, err := g.hasEnded(ctx, claim); err != nil {
		return ack{}, err
	} else if ended {
		a.Status, a.Code, a.Message = http.StatusOK, codeEnded, "the turn has ended already, and keeps its result"
		return a, nil
	}
	return a, g.publishCancel(ctx, t, r, claim, called)
}

// hasEnded reports whether the turn of a claim has ended. That it has not is only known of the time of the read.
func (g *Gateway) hasEnded(ctx context.Context, claim idempotency.Record) (bool, error) {
	name, ok := subjects.ParseKey(claim.Key)
	if !ok {
		return false, nil
	}
	end, err := g.journal(ctx).store.Last(ctx, name.Public(events.RecordResponse))
	if errors.Is(err, idempotency.ErrNotFound) {
		return false, nil
	}
	return err == nil && end.Seq > claim.Seq, err // else it is of an earlier turn with the same key, whose claim has expired
}

// publishCancel publishes the request to the workers of the pool that has the turn.
func (g *Gateway) publishCancel(ctx context.Context, t auth.Target, r cancelRequest, claim idempotency.Record, called *events.ToolCall) error {
	client, err := oneturn.NewClient(g.o.NATS, oneturn.ClientOptions{Prefix: g.o.Prefix, Pool: cmp.Or(claim.Meta.Pool, subjects.DefaultPool)})
	if err != nil {
		return err
	}
	cancel := &oneturn.Cancel{
		TurnID: oneturn.TurnID{App: t.App, Chat: t.Chat, Run: called.RunID}, Workflow: called.WorkflowName, Reason: r.reason, UserID: t.User, ToolCallID: r.toolCallID,
	}
	if r.toolCallID == "" {
		cancel.Turn = called.Turn
	}
	_, err = client.Cancel(ctx, cancel)
	if errors.Is(err, events.ErrBadArgs) {
		return refusalOfBody(err)
	}
	return err
}

// claimOf finds the claim of the turn that is meant.
func (g *Gateway) claimOf(ctx context.Context, t auth.Target, r cancelRequest) (idempotency.Record, error) {
	if r.turn != "" {
		claim, err := g.journal(ctx).store.Last(ctx, subjects.TurnKey(t.App, t.Chat, r.run, r.turn).Public(events.RecordCall))
		if !errors.Is(err, idempotency.ErrNotFound) || r.toolCallID == "" {
			return claim, err
		}
	}
	names := g.journal(ctx).reader.Names(subjects.Token(t.App))
	for _, callID := range query.CallsIn(r.toolCallID) {
		found, err := names.Locate(ctx, query.RefTo(events.TurnID{App: t.App, Chat: t.Chat, Run: r.run}, callID, ""), query.Claims)
		if err != nil {
			return idempotency.Record{}, err
		}
		if len(found) > 0 {
			return g.journal(ctx).store.Last(ctx, found[0].Name())
		}
	}
	return idempotency.Record{}, idempotency.ErrNotFound
}
