package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
)

// parkAfter is how long a tool waits for a person in memory. The default is 10 s.
const parkAfter = time.Second

// killAsking kills a worker whose tool waits for a person, before its turn is parked.
func killAsking(ctx context.Context, s *stage) error {
	w, err := s.crew.hire(ctx)
	if err != nil {
		return err
	}
	s.sayf("a fresh worker: process %d", w.pid())
	t := studio("t5", "ApprovalAgent", "Post", map[string]any{"title": "Spring sale", "body": "Everything must go.", "agent_message": "Please look."})
	if err := s.publish(ctx, t); err != nil {
		return err
	}
	asked, err := s.question(ctx, "t5/1")
	if err != nil {
		return err
	}
	run, err := s.ledger.wait(ctx, t.Turn)
	if err != nil {
		return err
	}
	s.sayf("%s runs in process %d and asks in %s, question %s: kill -9 %d", run.Tool, run.Worker, asked.Component, asked.ToolCallID, run.Worker)
	if err := s.crew.kill(run.Worker); err != nil {
		return err
	}
	begin := time.Now()
	yes, err := s.answer(ctx, asked, map[string]any{"status": "approved"})
	if err != nil {
		return err
	}
	r, err := s.await(ctx, t, begin)
	if err != nil {
		return err
	}
	again, err := s.answer(ctx, asked, map[string]any{"status": "approved"})
	if err != nil {
		return err
	}
	other, err := s.answer(ctx, asked, map[string]any{"status": "rejected"})
	if err != nil {
		return err
	}
	runs, err := s.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	s.checkf(yes.OK() && r.Success, "the turn ended with success")
	s.checkf(notes(runs, "published") == 1, "the ledger has: asked for approval by %s, published %s", workersOf(noted(runs, "asked for approval")), times(notes(runs, "published")))
	seen := s.questions.wait(ctx, 1)["t5/1"]
	s.checkf(seen == 1, "subscribers saw the question %s", times(seen))
	s.checkf(again.Code == "replayed" && other.Code == "already_answered", "the same answer again: %d %s; another one: %d %s", again.Status, again.Code, other.Status, other.Code)
	return nil
}

// killAllParked kills all workers while a turn is parked, and has others go on with it.
func killAllParked(ctx context.Context, s *stage) error {
	t := studio("t6", "DiagramAgent", "SequenceDiagram", map[string]any{"title": "Checkout", "mermaid": "sequenceDiagram", "agent_message": "Is it so?"})
	if err := s.publish(ctx, t); err != nil {
		return err
	}
	first, err := s.question(ctx, "t6/1")
	if err != nil {
		return err
	}
	begin := time.Now()
	parked := s.parks.wait(ctx, 1)[t.Turn]
	s.sayf("question %s is open; %d ms later the turn is parked, as a chat.run_complete says", first.ToolCallID, time.Since(begin).Milliseconds())
	s.sayf("kill -9 of all workers: processes %s", s.crew)
	if err := s.crew.dismiss(); err != nil {
		return err
	}
	for range 2 {
		if _, err := s.crew.hire(ctx); err != nil {
			return err
		}
	}
	s.sayf("others take their place: processes %s", s.crew)
	before, err := s.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	if _, err := s.question(ctx, "t6/1"); err != nil {
		return err
	}
	if _, err = s.answer(ctx, first, map[string]any{"status": "approved"}); err != nil {
		return err
	}
	second, err := s.question(ctx, "t6/2")
	if err != nil {
		return err
	}
	begin = time.Now()
	if _, err = s.answer(ctx, second, map[string]any{"file": "checkout.mmd"}); err != nil {
		return err
	}
	r, err := s.await(ctx, t, begin)
	if err != nil {
		return err
	}
	runs, err := s.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	s.checkf(parked == 1 && len(before) == 1, "nothing ran while the turn was parked")
	s.checkf(r.Success && r.Content == "Checkout is saved as checkout.mmd.", "the turn ended with success, after two answers")
	s.checkf(notes(runs, "saved the diagram") == 1, "the ledger has: saved the diagram %s", times(notes(runs, "saved the diagram")))
	return nil
}

// studio is a turn of the workflow whose tools ask people.
func studio(key, agent, model string, data map[string]any) *oneturn.Turn {
	t := turn(key, agent, model, data)
	t.Workflow = "Studio"
	t.ContextVariables = map[string]any{"chat_id": t.Chat, "workflow_name": t.Workflow}
	return t
}

func (s *stage) publish(ctx context.Context, t *oneturn.Turn) error {
	_, err := s.client.Publish(ctx, t)
	return err
}

// question waits until a question of the demo's chat is open.
func (s *stage) question(ctx context.Context, id string) (oneturn.Wait, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := s.client.Waits(ctx, oneturn.WaitsRequest{App: "demo", Chat: "demo"})
		if err == nil {
			for _, w := range found.Waits {
				if w.ToolCallID == id {
					return w, nil
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return oneturn.Wait{}, fmt.Errorf("question %s was not asked: %w", id, context.Cause(ctx))
		}
	}
}

// answer gives an answer and tells the verdict.
func (s *stage) answer(ctx context.Context, w oneturn.Wait, value map[string]any) (oneturn.Verdict, error) {
	v, err := s.client.Answer(ctx, oneturn.AnswerRequest{
		App: w.App, Chat: w.Chat, ToolCallID: w.ToolCallID, Value: value, Workflow: w.Workflow, Subject: w.Subject,
	})
	if err == nil {
		s.sayf("answer to %s: %d %s", w.ToolCallID, v.Status, v.Code)
	}
	return v, err
}

// questionOf is the id of a question.
func questionOf(data map[string]any) string {
	id, _ := data["tool_call_id"].(string)
	return id
}

// parkedTurn is the turn of a run that has ended because it waits for a person.
func parkedTurn(data map[string]any) string {
	if data["reason"] != events.ReasonAwaitingInput {
		return ""
	}
	turn, _ := data["turn"].(string)
	return turn
}

// noted returns the lines of a ledger that say something.
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
