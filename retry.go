package oneturn

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/retry"
	"github.com/oneturn/oneturn/subjects"
)

// Retry asks for a new turn that runs a program again which has failed or was cancelled, see [Client.Retry].
type Retry struct {
	TurnID // of the turn to retry
	// Key is the turn key of the retry. Defaults to the key of the turn and "~retry1"; see Client.Retry. Two retries of one turn under
	// different keys are two turns: both run the calls that have not finished.
	Key string
	// Rerun are calls of the program that run again although their effect may have happened, by their ids in it:
	// "1", "fan[0]". A retry with such a call that is not named is refused, and its response names the calls.
	Rerun            []string
	ContextVariables map[string]any // snapshot of the context variables; the one of the turn to retry is not stored
}

// Retried is the turn that retries another one.
type Retried struct {
	TurnID
	Existed bool    // it was published before, perhaps by another client; then Receipt is empty
	Receipt Receipt // of its message
}

// Retry publishes a turn that runs the program of an ended turn again: the calls that have finished keep their results and are not
// entered again, the one that failed and those that did not start run. Workflow, agent, user and data stay the same. Wait
// for the retry with [Client.Await], by the TurnID that Retry returns.
//
// A retry that is made again, also by another client, is the same turn: its key is the key of the turn and "~retry1", or
// "~retry2" and so on where earlier retries were refused or cancelled before they ran anything. A retry that has failed is retried by its own key.
//
// It fails with an [events.Error] with code bad_args if the turn cannot be retried: it has no records, has not ended, has succeeded, or is one
// call and not a program. The worker checks the rest, and the response of the retry then has the reason. Retry needs a running worker.
func (c *Client) Retry(ctx context.Context, r *Retry) (*Retried, error) {
	fail := func(err error) (*Retried, error) {
		return nil, fmt.Errorf("retry turn %.80q of chat %.80q: %w", r.Turn, r.Chat, err)
	}
	if err := r.check(); err != nil {
		return fail(err)
	}
	read := func(id events.TurnID) (*retry.Past, error) { return c.past(ctx, TurnID(id)) }
	of, past, err := retry.Find(events.TurnID(r.TurnID), read)
	if err != nil {
		return fail(err)
	}
	id, existed, err := retry.Key(of, r.Key, read)
	if err != nil {
		return fail(err)
	}
	done := &Retried{TurnID: TurnID(id), Existed: existed}
	if existed {
		return done, nil
	}
	e := events.NewRetry(id, past.Claim.WorkflowName, of.Turn, r.Rerun)
	if r.ContextVariables != nil {
		vars, err := tree(r.ContextVariables)
		if err != nil {
			return fail(fmt.Errorf("its context variables have no JSON form: %w", err))
		}
		e.ContextVariables, _ = vars.(map[string]any)
	}
	body, err := events.EncodeTurn(e, time.Now())
	if err != nil {
		return fail(err)
	}
	if done.Receipt, err = c.publish(ctx, message{kind: events.KindRetry, id: done.TurnID, workflow: e.Workflow, body: body, msgID: c.msgID(e), depth: depth(ctx)}); err != nil {
		return fail(err)
	}
	return done, nil
}

// past reads the claim and the response of a turn by the request API.
func (c *Client) past(ctx context.Context, id TurnID) (*retry.Past, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	plain := events.CallID(events.TurnID(id), subjects.TurnKey(tenant(id.App), id.Chat, id.Run, id.Turn).Turn)
	var records []retry.Record
	for q := (api.TurnRequest{Chat: id.Chat, Run: id.Run, Turn: id.Turn}); ; {
		page, err := request[api.Page](ctx, c, tenant(id.App), api.VerbTurn, q)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			if (r.Kind == events.KindToolCall || r.Kind == events.KindToolResponse || r.Kind == events.RecordProgram) && retry.HasToolCallID(r.Event, plain) {
				records = append(records, retry.Record{Kind: r.Kind, Seq: r.Sequence, Event: r.Event})
			}
		}
		if page.Next <= q.From {
			return retry.Read(records, nil)
		}
		q.From = page.Next
	}
}
