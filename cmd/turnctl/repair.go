package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// Repair runs the sweep of the workers (internal/sweep) once, with its rules and its store of pages in memory:
// over all turns, or for one that is named. For each turn that needs it a resume is published, unless --dry-run is
// set; a worker ends the turn.

// repairSettings selects what to repair.
type repairSettings struct {
	scope       sweep.Scope
	turn        events.TurnID
	raw         string // journal key of one turn
	maxTurnLife time.Duration
	dryRun      bool
}

func (a *app) repair() *cobra.Command {
	var cfg config.Turnctl
	var want repairSettings
	c := a.command(&cobra.Command{
		Use:   "repair [CHAT TURN]",
		Short: "End turns whose message is deleted",
		Long: `Repair does what workers do every five minutes: it reads the journal for turns without a response whose
message is no longer in its stream and that wait for no answer, and for turns older than
--max-turn-life, and publishes a resume for each. A worker then ends the turn according to its effect:
an unsafe one as interrupted, an idempotent one by running its tool again with the stored arguments.
With CHAT and TURN it checks that turn only. Turns that were claimed less than two ack waits ago are
not checked yet: repair prints their number, and when to try again.

Exit code: 0 nothing is left to do, 1 something is: with --dry-run, turns that need a resume; or
the turn was not found.`,
		Example: `  turnctl repair --dry-run
  turnctl repair --app acme --chat chat-42
  turnctl repair chat-42 turn-7 --app acme`,
		Args: cli.Arguments(0, 2, "a turn"),
	}, &cfg, func(ctx context.Context, args []string) error {
		one := len(args) == 2 || want.raw != ""
		switch {
		case len(args) == 1:
			return cli.Usagef("repair: CHAT and TURN are required together: turnctl repair CHAT TURN")
		case len(args) == 2 && want.raw != "":
			return cli.Usagef("repair: --key and CHAT TURN are mutually exclusive: omit one")
		case one && want.scope.Chat != "":
			return cli.Usagef("repair: --chat and a turn are mutually exclusive: omit one")
		case len(args) == 0 && want.turn.Run != "":
			return cli.Usagef("repair: --run requires CHAT and TURN")
		case want.maxTurnLife <= 0:
			return cli.Usagef("repair: invalid --max-turn-life %s: use a positive duration, for example --max-turn-life=168h", want.maxTurnLife)
		}
		if len(args) == 2 {
			want.turn.App, want.turn.Chat, want.turn.Turn = want.scope.App, args[0], args[1]
			if want.turn.App == "" {
				want.turn.App = events.DefaultApp
			}
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		out, err := s.repair(ctx, &want, one, cfg.Logger(a.stderr))
		if err != nil && (out == nil || len(out.Turns) == 0) {
			return err
		}
		// What was done before an error is printed too.
		return errors.Join(err, a.print(cfg.Format, out, out.text), out.left())
	})
	c.Flags().StringVar(&want.scope.App, "app", "", "only this tenant; with CHAT and TURN the tenant of the turn")
	c.Flags().StringVar(&want.scope.Chat, "chat", "", "only this chat")
	c.Flags().StringVar(&want.turn.Run, "run", "", "run id of the turn, if its producer sends one")
	c.Flags().StringVar(&want.raw, "key", "", "journal key of the turn, instead of chat and turn")
	durationFlag(c, &want.maxTurnLife, "max-turn-life", provision.DefaultMaxTurnLife, "how long a turn may stay open, as set for the workers")
	c.Flags().BoolVar(&want.dryRun, "dry-run", false, "print what would be repaired without changing anything")
	return c
}

// repaired is the output of turnctl repair.
type repaired struct {
	DryRun bool         `json:"dry_run"`
	Open   int          `json:"open"`              // turns without a response that were checked
	Young  int          `json:"young"`             // of them were claimed too recently to check
	RetryS int64        `json:"retry_s,omitempty"` // seconds until the last of the young ones can be checked
	Failed int          `json:"failed"`            // of them could not be read or resumed
	Turns  []repairTurn `json:"turns"`             // that need a resume; the turn of the arguments in any case
}

// repairTurn is one turn.
type repairTurn struct {
	Key       string          `json:"key"`
	App       string          `json:"app_id"`
	Chat      string          `json:"chat_id"`
	Run       string          `json:"run_id,omitempty"`
	Turn      string          `json:"turn"`
	Workflow  string          `json:"workflow,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Effect    string          `json:"effect,omitempty"`
	Condition sweep.Condition `json:"condition"` // orphaned, corrupt, expired; of a named turn also ended, unclaimed, young, parked, held
	AgeS      int64           `json:"age_s"`     // since the claim
	ResumeSeq uint64          `json:"resume_seq,omitempty"`
	Error     string          `json:"error,omitempty"`
}

func (s *server) repair(ctx context.Context, want *repairSettings, one bool, logger *slog.Logger) (*repaired, error) {
	now, err := jsapi.ServerTime(ctx, s.js, s.space.TurnsStream())
	if err != nil {
		return nil, unprovisioned(err)
	}
	ackWait, err := s.ackWait(ctx)
	if err != nil {
		return nil, err
	}
	finder := &sweep.Sweep{
		Space: s.space, JS: s.js, Store: s.journal, LeaseHeld: sweep.LeaseHeld(s.js, s.space), AckWait: ackWait,
		MaxTurnLife: want.maxTurnLife, Rate: sweep.Rate, Logger: logger,
	}
	out := &repaired{DryRun: want.dryRun, Turns: []repairTurn{}}
	resume := func(ctx context.Context, f sweep.Finding) (uint64, error) {
		t := newRepairTurn(f)
		var err error
		if f.Condition.NeedsResume() && !want.dryRun {
			if t.ResumeSeq, err = finder.Resume(ctx, f); err != nil {
				t.Error = err.Error()
			}
		}
		out.Turns = append(out.Turns, t)
		return t.ResumeSeq, err
	}
	if one {
		key, err := s.key(want.turn, want.raw)
		if err != nil {
			return nil, err
		}
		f, err := finder.Check(ctx, key, now)
		if err != nil {
			return nil, err
		}
		if f.Condition == sweep.TurnUnclaimed && len(f.Turn.Records) == 0 {
			return nil, s.missing(ctx, key, want.turn)
		}
		if f.Condition == sweep.TurnYoung {
			out.Young, out.RetryS = 1, seconds(finder.MinAge()-f.Age)
		}
		if f.Condition != sweep.TurnEnded && f.Condition != sweep.TurnUnclaimed {
			out.Open = 1
		}
		if _, err := resume(ctx, f); err != nil {
			out.Failed = 1
		}
		return out, nil
	}
	swept, err := finder.Run(ctx, sweep.NewMemoryPages(), now, want.scope, resume)
	out.Open, out.Failed, out.Young = swept.Open, swept.Failed, swept.Young
	if out.Young > 0 {
		out.RetryS = seconds(swept.Wait)
	}
	return out, unprovisioned(err)
}

// seconds rounds a duration up, to at least one second.
func seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// ackWait is the longest ack wait of the consumers of the inbound stream.
func (s *server) ackWait(ctx context.Context) (time.Duration, error) {
	stream, err := s.js.Stream(ctx, s.space.InStream())
	if err != nil {
		return 0, fmt.Errorf("open the inbound stream %s: %w", s.space.InStream(), unprovisioned(err))
	}
	consumer, err := stream.Consumer(ctx, s.space.WorkerConsumer(subjects.DefaultPool))
	if err != nil {
		return provision.DefaultAckWait, nil //nolint:nilerr // another pool; the default only decides which turns are too young
	}
	return consumer.CachedInfo().Config.AckWait, nil
}

func newRepairTurn(f sweep.Finding) repairTurn {
	l := newTurnReport(f.Turn, false)
	return repairTurn{
		Key: l.Key, App: l.App, Chat: l.Chat, Run: l.Run, Turn: l.Turn, Workflow: l.Workflow, Tool: l.Tool, Effect: l.Effect,
		Condition: f.Condition, AgeS: int64(f.Age.Seconds()),
	}
}

// left is cli.ErrReported if turns still need a resume.
func (r *repaired) left() error {
	if r.Failed > 0 {
		return cli.ErrReported
	}
	for i := range r.Turns {
		if r.DryRun && r.Turns[i].Condition.NeedsResume() {
			return cli.ErrReported
		}
	}
	return nil
}

func (r *repaired) text(w io.Writer) {
	rows := make([][]string, 0, len(r.Turns))
	for i := range r.Turns {
		t := &r.Turns[i]
		did := "nothing to do"
		switch {
		case t.Error != "":
			did = "failed: " + clean(t.Error, 300)
		case t.ResumeSeq > 0:
			did = fmt.Sprintf("resume published as message %d", t.ResumeSeq)
		case t.Condition.NeedsResume():
			did = "needs a resume"
		case t.Condition == sweep.TurnYoung:
			did = fmt.Sprintf("too young: try again in %d s", r.RetryS)
		}
		rows = append(rows, []string{
			id(t.App) + "/" + id(t.Chat), id(t.Turn), id(t.Tool), id(t.Effect), age(time.Duration(t.AgeS) * time.Second), string(t.Condition), did,
		})
	}
	table(w, 0, rows)
	switch scanned := len(r.Turns) == 0 || r.Turns[0].Condition != sweep.TurnYoung; {
	case r.Young > 0 && scanned:
		fmt.Fprintf(w, "%s, %d too young to check: try again in %d s\n", plural.Of(r.Open, "open turn"), r.Young, r.RetryS)
	case len(r.Turns) == 0:
		fmt.Fprintf(w, "nothing to repair: %s, each with a message or waiting for an answer\n", plural.Of(r.Open, "open turn"))
	}
	if r.Failed > 0 {
		fmt.Fprintf(w, "%s could not be read or resumed\n", plural.Of(r.Failed, "turn"))
	}
}
