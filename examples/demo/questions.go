// questions.go holds the scenarios in which a tool waits for a person: the question survives
// the death of one worker and of all workers, and each answer counts once.

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
)

// parkAfter is how long a tool waits for a person in memory. The default is 10 s.
const parkAfter = time.Second

// killWaiting kills a worker whose tool waits for a person, before its turn is parked.
func killWaiting(ctx context.Context, d *demo) error {
	w, err := d.workers.start(ctx)
	if err != nil {
		return err
	}
	d.detailf("a fresh worker: process %d", w.pid())
	t := studio("t5", "ApprovalAgent", "Post", map[string]any{"title": "Spring sale", "body": "Everything must go.", "agent_message": "Please look."})
	if err := d.publish(ctx, t); err != nil {
		return err
	}
	asked, err := d.question(ctx, "t5/1")
	if err != nil {
		return err
	}
	run, err := d.ledger.wait(ctx, t.Turn)
	if err != nil {
		return err
	}
	d.detailf("%s runs in process %d and asks in %s, question %s: kill -9 %d", run.Tool, run.Worker, asked.Component, asked.ToolCallID, run.Worker)
	if err := d.workers.kill(run.Worker); err != nil {
		return err
	}
	begin := time.Now()
	yes, err := d.answer(ctx, asked, map[string]any{"status": "approved"})
	if err != nil {
		return err
	}
	r, err := d.await(ctx, t, begin)
	if err != nil {
		return err
	}
	again, err := d.answer(ctx, asked, map[string]any{"status": "approved"})
	if err != nil {
		return err
	}
	other, err := d.answer(ctx, asked, map[string]any{"status": "rejected"})
	if err != nil {
		return err
	}
	runs, err := d.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	d.checkf(yes.OK() && r.Success, "the turn ended with success")
	d.checkf(notes(runs, "published") == 1, "the ledger has: asked for approval by %s, published %s", workersOf(noted(runs, "asked for approval")), times(notes(runs, "published")))
	seen := d.questions.wait(ctx, 1)["t5/1"]
	d.checkf(seen == 1, "subscribers saw the question %s", times(seen))
	d.checkf(again.Code == "replayed" && other.Code == "already_answered", "the same answer again: %d %s; another one: %d %s", again.Status, again.Code, other.Status, other.Code)
	return nil
}

// killAllParked kills all workers while a turn is parked; new workers resume it.
func killAllParked(ctx context.Context, d *demo) error {
	t := studio("t6", "DiagramAgent", "SequenceDiagram", map[string]any{"title": "Checkout", "mermaid": "sequenceDiagram", "agent_message": "Is it so?"})
	if err := d.publish(ctx, t); err != nil {
		return err
	}
	first, err := d.question(ctx, "t6/1")
	if err != nil {
		return err
	}
	begin := time.Now()
	parked := d.parks.wait(ctx, 1)[t.Turn]
	d.detailf("question %s is open; %d ms later the turn is parked, as a chat.run_complete event shows", first.ToolCallID, time.Since(begin).Milliseconds())
	d.detailf("kill -9 of all workers: processes %s", d.workers)
	if err := d.workers.stop(); err != nil {
		return err
	}
	for range 2 {
		if _, err := d.workers.start(ctx); err != nil {
			return err
		}
	}
	d.detailf("new workers: processes %s", d.workers)
	before, err := d.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	if _, err := d.question(ctx, "t6/1"); err != nil {
		return err
	}
	if _, err = d.answer(ctx, first, map[string]any{"status": "approved"}); err != nil {
		return err
	}
	second, err := d.question(ctx, "t6/2")
	if err != nil {
		return err
	}
	begin = time.Now()
	if _, err = d.answer(ctx, second, map[string]any{"file": "checkout.mmd"}); err != nil {
		return err
	}
	r, err := d.await(ctx, t, begin)
	if err != nil {
		return err
	}
	runs, err := d.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	d.checkf(parked == 1 && len(before) == 1, "nothing ran while the turn was parked")
	d.checkf(r.Success && r.Content == "Checkout is saved as checkout.mmd.", "the turn ended with success, after two answers")
	d.checkf(notes(runs, "saved the diagram") == 1, "the ledger has: saved the diagram %s", times(notes(runs, "saved the diagram")))
	return nil
}

// studio returns a turn of the workflow whose tools ask people.
func studio(key, agent, model string, data map[string]any) *oneturn.Turn {
	t := turn(key, agent, model, data)
	t.Workflow = "Studio"
	t.ContextVariables = map[string]any{"chat_id": t.Chat, "workflow_name": t.Workflow}
	return t
}

func (d *demo) publish(ctx context.Context, t *oneturn.Turn) error {
	_, err := d.client.Publish(ctx, t)
	return err
}

// question waits until a question of the demo's chat is open.
func (d *demo) question(ctx context.Context, id string) (api.Question, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := d.client.Questions(ctx, oneturn.QuestionFilter{App: "demo", Chat: "demo"})
		if err == nil {
			for _, w := range found.Questions {
				if w.ToolCallID == id {
					return w, nil
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return api.Question{}, fmt.Errorf("question %s was not asked: %w", id, context.Cause(ctx))
		}
	}
}

// answer publishes an answer and prints its result.
func (d *demo) answer(ctx context.Context, w api.Question, value map[string]any) (*events.AnswerResult, error) {
	v, err := d.client.Answer(ctx, &oneturn.Answer{
		QuestionID: oneturn.QuestionID{App: w.App, Chat: w.Chat, ToolCallID: w.ToolCallID},
		Value:      value, Workflow: w.Workflow, Subject: w.Subject,
	})
	if err == nil {
		d.detailf("answer to %s: %d %s", w.ToolCallID, v.Status, v.Code)
	}
	return v, err
}

// questionOf returns the id of a question.
func questionOf(data map[string]any) string {
	id, _ := data["tool_call_id"].(string)
	return id
}

// parkedTurn returns the turn of a run that ended because it waits for a person, else "".
func parkedTurn(data map[string]any) string {
	if data["reason"] != events.ReasonAwaitingInput {
		return ""
	}
	turn, _ := data["turn"].(string)
	return turn
}

// noted returns the runs that reached a step.
func noted(runs []run, what string) []run {
	var found []run
	for _, r := range runs {
		if r.What == what {
			found = append(found, r)
		}
	}
	return found
}

func notes(runs []run, what string) int { return len(noted(runs, what)) }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
