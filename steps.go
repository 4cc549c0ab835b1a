package oneturn

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/api"
)

// Steps returns the steps of a turn that is a program, with their states: those that were called, in the order of their calls,
// and before them those that a retry has copied ([api.StepCopied]); none for any other turn. A running worker has to reply, else it fails with [ErrNoWorker].
func (c *Client) Steps(ctx context.Context, id TurnID) ([]api.Step, error) {
	fail := func(err error) ([]api.Step, error) {
		return nil, fmt.Errorf("steps of turn %.80q of chat %.80q: %w", id.Turn, id.Chat, err)
	}
	if err := id.check(); err != nil {
		return fail(err)
	}
	var steps []api.Step
	for q := (api.TurnRequest{Chat: id.Chat, Run: id.Run, Turn: id.Turn, Steps: true}); ; {
		page, err := c.pageOfSteps(ctx, tenant(id.App), q)
		if err != nil {
			return fail(err)
		}
		steps = append(steps, page.Steps...)
		if page.Next <= q.From {
			return steps, nil
		}
		q.From = page.Next
	}
}

func (c *Client) pageOfSteps(ctx context.Context, app string, q api.TurnRequest) (*api.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return request[api.Page](ctx, c, app, api.VerbTurn, q)
}
