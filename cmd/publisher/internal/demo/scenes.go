package demo

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

func threeTimes(ctx context.Context, s *stage) error {
	t := turn("t1", "Greeter", "Greeting", map[string]any{"name": "Ada", "language": "fr"})
	begin := time.Now()
	var stored [3]uint64
	for i := range stored {
		receipt, err := s.client.Publish(ctx, t)
		if err != nil {
			return err
		}
		stored[i] = receipt.Sequence
	}
	s.sayf("published: messages %d, %d and %d of the inbound stream", stored[0], stored[1], stored[2])
	r, err := s.await(ctx, t, begin)
	if err != nil {
		return err
	}
	duplicates, err := s.duplicates(ctx, 2)
	if err != nil {
		return err
	}
	runs, err := s.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	s.checkf(r.Success && r.Content == "Bonjour, Ada!", "the turn ended with success")
	s.checkf(len(runs) == 1, "the ledger has %s of greet", count(len(runs), "run"))
	s.checkf(duplicates == 2, "the workers' /metrics count %s", count(duplicates, "duplicate"))
	return nil
}

func wrongData(ctx context.Context, s *stage) error {
	data := map[string]any{"nam": "Ada", "language": "english"}
	t := turn("t2", "Greeter", "Greeting", data)
	begin := time.Now()
	if _, err := s.client.Publish(ctx, t); err != nil {
		return err
	}
	text, err := events.AppendJSON(nil, data)
	if err != nil {
		return err
	}
	s.sayf("published: %s", text)
	r, err := s.await(ctx, t, begin)
	if err != nil {
		return err
	}
	feedback := feedbackOf(r)
	s.sayf("feedback for the model that wrote it:")
	for line := range strings.SplitSeq(strings.TrimSpace(feedback), "\n") {
		s.sayf("  | %s", line)
	}
	runs, err := s.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	s.checkf(r.Code == events.CodeValidationFailed && !r.Success, "the turn was answered with %s %s", r.Status, r.Code)
	s.checkf(strings.Contains(feedback, "name") && strings.Contains(feedback, "language"), "the feedback names both fields")
	s.checkf(len(runs) == 0, "the ledger has %s", count(len(runs), "run"))
	return nil
}

// feedbackOf is the text of a validation failure that is made for the model.
func feedbackOf(r *oneturn.Response) string {
	payload, _ := r.Payload.(map[string]any)
	text, _ := payload["feedback"].(string)
	return text
}

func killUnsafe(ctx context.Context, s *stage) error {
	t := turn("t3", "Cashier", "Charge", map[string]any{"customer": "Ada", "cents": json.Number("1250"), "seconds": json.Number("30")})
	r, err := s.killInside(ctx, t)
	if err != nil {
		return err
	}
	runs, err := s.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	s.checkf(r.Code == events.CodeInterrupted && !r.Success, "the turn was answered with %s %s", r.Status, r.Code)
	s.checkf(len(runs) == 1, "the ledger has %s of charge: nobody is charged twice", count(len(runs), "run"))
	return nil
}

func killIdempotent(ctx context.Context, s *stage) error {
	w, err := s.crew.hire(ctx)
	if err != nil {
		return err
	}
	s.sayf("a fresh worker takes the place of the dead one: process %d", w.pid())
	t := turn("t4", "Archivist", "Note", map[string]any{"text": "Ada was here.", "seconds": json.Number("2")})
	r, err := s.killInside(ctx, t)
	if err != nil {
		return err
	}
	runs, err := s.ledger.of(t.Turn)
	if err != nil {
		return err
	}
	s.checkf(r.Success && r.Status == events.StatusOK, "the turn ended with success")
	s.checkf(len(runs) == 2 && runs[0].Worker != runs[1].Worker, "the ledger has %s of file_note, by %s", count(len(runs), "run"), workersOf(runs))
	return nil
}

// afterwards looks at everything again, now that nothing runs any more.
func afterwards(ctx context.Context, s *stage) error {
	want := map[string]int{"t1": 1, "t2": 1, "t3": 1, "t4": 1, "t5": 1, "t6": 1}
	seen := s.responses.wait(ctx, len(want))
	s.checkf(maps.Equal(seen, want), "subscribers saw exactly one chat.tool_response of each turn: %s", listed(seen))
	runs := map[string]int{}
	for turn := range want {
		of, err := s.ledger.of(turn)
		if err != nil {
			return err
		}
		for _, r := range of {
			if r.What == "" {
				runs[r.Tool]++
			}
		}
	}
	s.checkf(maps.Equal(runs, map[string]int{"greet": 1, "charge": 1, "file_note": 2}), "the ledger has these runs of tools that ask nobody, and no others: %s", listed(runs))
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
func (s *stage) killInside(ctx context.Context, t *oneturn.Turn) (*oneturn.Response, error) {
	begin := time.Now()
	if _, err := s.client.Publish(ctx, t); err != nil {
		return nil, err
	}
	run, err := s.ledger.wait(ctx, t.Turn)
	if err != nil {
		return nil, err
	}
	s.sayf("%s runs in process %d after %d ms: kill -9 %d", run.Tool, run.Worker, time.Since(begin).Milliseconds(), run.Worker)
	if err := s.crew.kill(run.Worker); err != nil {
		return nil, err
	}
	return s.await(ctx, t, begin)
}

// turn is a turn of the chat in which everything happens.
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
