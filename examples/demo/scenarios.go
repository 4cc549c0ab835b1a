// scenarios.go holds the scenarios without people: duplicates, invalid data, and kills inside
// tools of both effects. Each publishes a turn, waits for its response and compares the ledger.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
)

func threeTimes(ctx context.Context, d *demo) error {
	t := turn("t1", "Greeter", "Greeting", map[string]any{"name": "Ada", "language": "fr"})
	begin := time.Now()
	var stored [3]uint64
	for i := range stored {
		receipt, err := d.client.Publish(ctx, t)
		if err != nil {
			return err
		}
		stored[i] = receipt.Sequence
	}
	d.detailf("published: messages %d, %d and %d of the inbound stream", stored[0], stored[1], stored[2])
	r, err := d.await(ctx, t, begin)
	if err != nil {
		return err
	}
	duplicates, err := d.duplicates(ctx, 2)
	if err != nil {
		return err
	}
	runs, err := d.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	d.checkf(r.Success && r.Content == "Bonjour, Ada!", "the turn ended with success")
	d.checkf(len(runs) == 1, "the ledger has %s of greet", count(len(runs), "run"))
	d.checkf(duplicates == 2, "the workers' /metrics count %s", count(duplicates, "duplicate"))
	return nil
}

func wrongData(ctx context.Context, d *demo) error {
	data := map[string]any{"nam": "Ada", "language": "english"}
	t := turn("t2", "Greeter", "Greeting", data)
	begin := time.Now()
	if _, err := d.client.Publish(ctx, t); err != nil {
		return err
	}
	text, err := events.AppendJSON(nil, data)
	if err != nil {
		return err
	}
	d.detailf("published: %s", text)
	r, err := d.await(ctx, t, begin)
	if err != nil {
		return err
	}
	feedback := feedbackOf(r)
	d.detailf("feedback for the model that wrote it:")
	for line := range strings.SplitSeq(strings.TrimSpace(feedback), "\n") {
		d.detailf("  | %s", line)
	}
	runs, err := d.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	d.checkf(r.Code == events.CodeValidationFailed && !r.Success, "the turn was answered with code %s", r.Code)
	d.checkf(strings.Contains(feedback, "name") && strings.Contains(feedback, "language"), "the feedback names both fields")
	d.checkf(len(runs) == 0, "the ledger has %s", count(len(runs), "run"))
	return nil
}

// feedbackOf returns the text of a validation failure that is written for the model.
func feedbackOf(r *oneturn.Response) string {
	payload, _ := r.Payload.(map[string]any)
	text, _ := payload["feedback"].(string)
	return text
}

func killUnsafe(ctx context.Context, d *demo) error {
	t := turn("t3", "Cashier", "Charge", map[string]any{"customer": "Ada", "cents": json.Number("1250"), "seconds": json.Number("30")})
	r, err := d.killInside(ctx, t)
	if err != nil {
		return err
	}
	runs, err := d.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	d.checkf(r.Code == events.CodeInterrupted && !r.Success, "the turn was answered with code %s", r.Code)
	d.checkf(len(runs) == 1, "the ledger has %s of charge: no second charge", count(len(runs), "run"))
	return nil
}

func killIdempotent(ctx context.Context, d *demo) error {
	w, err := d.workers.start(ctx)
	if err != nil {
		return err
	}
	d.detailf("a new worker replaces the dead one: process %d", w.pid())
	t := turn("t4", "Archivist", "Note", map[string]any{"text": "Ada was here.", "seconds": json.Number("2")})
	r, err := d.killInside(ctx, t)
	if err != nil {
		return err
	}
	runs, err := d.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	d.checkf(r.Success, "the turn ended with success")
	d.checkf(len(runs) == 2 && runs[0].Worker != runs[1].Worker, "the ledger has %s of file_note, by %s", count(len(runs), "run"), workersOf(runs))
	return nil
}

// afterwards checks the counts again, after all turns have ended.
func afterwards(ctx context.Context, d *demo) error {
	want := map[string]int{"t1": 1, "t2": 1, "t3": 1, "t4": 1, "t5": 1, "t6": 1, "t7": 1, "t8": 1, "t9": 1}
	seen := d.responses.wait(ctx, len(want))
	d.checkf(maps.Equal(seen, want), "subscribers saw exactly one chat.tool_response of each turn: %s", listed(seen))
	runs := map[string]int{}
	for _, turn := range []string{"t1", "t2", "t3", "t4", "t5", "t6"} {
		of, err := d.ledger.of(turn)
		if err != nil {
			return err
		}
		for _, r := range of {
			if r.What == "" {
				runs[r.Tool]++
			}
		}
	}
	d.checkf(maps.Equal(runs, map[string]int{"greet": 1, "charge": 1, "file_note": 2}), "the ledger has these runs of single tools without questions, and no others: %s", listed(runs))
	return nil
}

// listed writes counts in the order of their names.
func listed(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// killInside publishes a turn, kills the worker that runs its tool, and waits for the end.
func (d *demo) killInside(ctx context.Context, t *oneturn.Turn) (*oneturn.Response, error) {
	begin := time.Now()
	if _, err := d.client.Publish(ctx, t); err != nil {
		return nil, err
	}
	run, err := d.ledger.wait(ctx, t.Turn)
	if err != nil {
		return nil, err
	}
	d.detailf("%s runs in process %d after %d ms: kill -9 %d", run.Tool, run.Worker, time.Since(begin).Milliseconds(), run.Worker)
	if err := d.workers.kill(run.Worker); err != nil {
		return nil, err
	}
	return d.await(ctx, t, begin)
}

// turn returns a turn of the chat that all scenarios use.
func turn(key, agent, model string, data map[string]any) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: "demo", Chat: "demo", Turn: key},
		Workflow: "Hello", Agent: agent, Model: model, Data: data,
	}
}

func workersOf(runs []run) string {
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = fmt.Sprintf("process %d", r.Worker)
	}
	return strings.Join(names, ", then ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
