// programs.go holds the scenarios of programs: the worker of a plan and of an orchestration is killed between two steps, and
// what has ended does not run again.

package main

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oneturn/oneturn"
)

// own has the workflows of these scenarios, and of the one of messages.
//
//go:embed workflows
var own embed.FS

// killPlan kills the worker of a plan after its first call has ended.
func killPlan(ctx context.Context, d *demo) error {
	t := program("t7", "Assistant", map[string]any{"type": "tool_calls", "calls": []any{
		map[string]any{"tool_name": "find_room", "arguments": map[string]any{"city": "Oslo"}},
		map[string]any{"tool_name": "hold_room", "arguments": map[string]any{"room": "$0.output.text"}},
		map[string]any{"tool_name": "pay", "arguments": map[string]any{"hold": "$1.output.text"}},
	}})
	r, runs, err := d.killAfter(ctx, t, "t7#0")
	if err != nil {
		return err
	}
	d.checkf(r.Success && resultOf(r, "pay") == "paid: hold of room 12 in Oslo", "the plan ended with success: %s", resultOf(r, "pay"))
	d.checkf(runs["find_room"] == 1, "find_room had ended and ran %s, the stored output was used", times(runs["find_room"]))
	d.checkf(runs["hold_room"] == 1 || runs["hold_room"] == 2, "hold_room, idempotent, was next and ran %s", times(runs["hold_room"]))
	d.checkf(runs["pay"] == 1, "pay, unsafe, ran %s", times(runs["pay"]))
	return nil
}

// killOrchestration kills the worker of an orchestration after its group of agents has ended.
func killOrchestration(ctx context.Context, d *demo) error {
	reviewer := func(name string) map[string]any {
		return map[string]any{"agent_id": name, "with": map[string]any{"draft": "{{ bindings.draft }}"}, "result_key": name}
	}
	t := program("t8", "Lead", map[string]any{
		"bindings": map[string]any{"draft": "The bridge opens on 4 May."},
		"plan": map[string]any{"steps": []any{
			map[string]any{"id": "fan", "parallel": map[string]any{"result_key": "reviews", "steps": []any{reviewer("facts"), reviewer("style")}}},
			map[string]any{"id": "merge", "agent": map[string]any{
				"agent_id": "editor", "with": map[string]any{"draft": "{{ bindings.draft }}", "reviews": "{{ result.reviews }}"},
			}},
		}},
	})
	r, runs, err := d.killAfter(ctx, t, "t8#fan[0]", "t8#fan[1]")
	if err != nil {
		return err
	}
	d.checkf(r.Success, "the orchestration ended with success")
	d.checkf(runs["facts"] == 1 && runs["style"] == 1, "facts and style, unsafe, had ended and ran once each")
	d.checkf(runs["editor"] == 1 || runs["editor"] == 2, "editor, idempotent, was next and ran %s, with the stored outputs of both", times(runs["editor"]))
	return nil
}

// killAfter publishes a turn whose tool is a program, kills its worker as soon as some steps have a response, waits for the end,
// and returns how often each tool ran.
func (d *demo) killAfter(ctx context.Context, t *oneturn.Turn, steps ...string) (r *oneturn.Response, runs map[string]int, err error) {
	w, err := d.workers.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	d.detailf("a fresh worker: process %d", w.pid())
	begin := time.Now()
	if err := d.publish(ctx, t); err != nil {
		return nil, nil, err
	}
	if err := d.steps.waitFor(ctx, steps...); err != nil {
		return nil, nil, err
	}
	owner, err := d.ledger.wait(ctx, t.Turn)
	if err != nil {
		return nil, nil, err
	}
	d.detailf("%s ended in process %d after %d ms, as chat.tool_response shows: kill -9 %d", listedSteps(steps), owner.Worker, time.Since(begin).Milliseconds(), owner.Worker)
	if err := d.workers.kill(owner.Worker); err != nil {
		return nil, nil, err
	}
	if r, err = d.await(ctx, t, begin); err != nil {
		return nil, nil, err
	}
	all, err := d.ledger.of(t.Turn)
	if err != nil {
		return nil, nil, err
	}
	runs = map[string]int{}
	for _, run := range all {
		runs[run.Tool]++
	}
	d.detailf("runs: %s, by %s", listed(runs), workersOf(firstOfEach(all)))
	return r, runs, nil
}

// program returns a turn of the workflow whose tools run programs.
func program(key, agent string, data map[string]any) *oneturn.Turn {
	t := turn(key, agent, "", data)
	t.Workflow = "Trip"
	return t
}

func listedSteps(steps []string) string {
	if len(steps) == 1 {
		return "step " + steps[0]
	}
	return fmt.Sprintf("steps %s and %s", steps[0], steps[1])
}

// firstOfEach returns the first run of each worker.
func firstOfEach(runs []run) []run {
	seen := map[int]bool{}
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool {
		again := seen[r.Worker]
		seen[r.Worker] = true
		return again
	})
}

// resultOf returns the text that a call of a plan has as its output.
func resultOf(r *oneturn.Response, tool string) string {
	payload, _ := r.Payload.(map[string]any)
	results, _ := payload["results"].([]any)
	for _, item := range results {
		if result, _ := item.(map[string]any); result["tool_name"] == tool {
			output, _ := result["output"].(map[string]any)
			text, _ := output["text"].(string)
			return text
		}
	}
	return ""
}

// responseOf returns the turn of a response, "" for the response of a step.
func responseOf(data map[string]any) string {
	if _, step := data["step"]; step {
		return ""
	}
	turn, _ := data["turn"].(string)
	return turn
}

// stepOf returns the id of the step that has ended, "" for the response of a turn.
func stepOf(data map[string]any) string {
	if _, step := data["step"]; !step {
		return ""
	}
	id, _ := data["tool_call_id"].(string)
	return id
}

// waitFor waits until each key was counted.
func (t *tally) waitFor(ctx context.Context, keys ...string) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		t.mu.Lock()
		seen := maps.Clone(t.n)
		t.mu.Unlock()
		if !slices.ContainsFunc(keys, func(key string) bool { return seen[key] == 0 }) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no event of %v: %w", keys, context.Cause(ctx))
		}
	}
}
