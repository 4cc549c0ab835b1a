package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/retry"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// Retry reads the journal as a worker does (internal/retry), and publishes the retry only if a worker would run it, as far as
// that is known without manifests. retry_report.go has the output.

// retrySettings name a turn and how it is retried.
type retrySettings struct {
	turn   events.TurnID
	key    string
	rerun  []string
	dryRun bool
}

func (a *app) retry() *cobra.Command {
	var cfg config.Turnctl
	var want retrySettings
	c := a.command(&cobra.Command{
		Use:   "retry CHAT TURN",
		Short: "Run a program that failed again, without its finished calls",
		Long: `Retry publishes a new turn that runs the program of an ended turn again: the calls that have
finished keep their results and are not entered again; the one that failed and those that did not start
run. Workflow, agent, user and data stay the same. A program is a turn of a tool of kind plan or
orchestrate; it must have failed or been cancelled.

The new turn has the key of the turn and "~retry1", of a retry the next number, so a retry that is given
twice, or by two people, is one turn. A retry that a worker refused keeps its key: given again, the
command takes the next number. --as sets another key, which no turn has yet.

A call whose effect may have happened runs again only if --rerun names it, unless its tool is idempotent
or has no effect: its worker or its process died, it was cancelled or timed out, or its tool returned and
its result was not used. Find out first whether it has happened. --dry-run lists what would be copied and what would run, and publishes nothing.

Exit code: 0 the retry is published, or was before; 1 it is refused, or calls need --rerun.`,
		Example: `  turnctl retry chat-42 turn-7 --dry-run
  turnctl retry chat-42 turn-7 --app acme --rerun 2`,
		Args: cli.Arguments(2, 2, "a turn"),
	}, &cfg, func(ctx context.Context, args []string) error {
		want.turn.Chat, want.turn.Turn = args[0], args[1]
		if want.turn.Chat == "" || want.turn.Turn == "" {
			return cli.Usagef("retry: chat %q and turn %q: neither may be empty", want.turn.Chat, want.turn.Turn)
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		out, err := s.retry(ctx, &want)
		if err != nil {
			return err
		}
		return a.printOutcome(out.good(), cfg.Format, out, out.text)
	})
	c.Flags().StringVar(&want.turn.App, "app", events.DefaultApp, "tenant of the turn")
	c.Flags().StringVar(&want.turn.Run, "run", "", "run id of the turn, if its producer sends one")
	c.Flags().StringVar(&want.key, "as", "", "turn key of the retry (default: the key of the turn and ~retry1)")
	c.Flags().StringSliceVar(&want.rerun, "rerun", nil, "calls that run again although their effect may have happened")
	c.Flags().BoolVar(&want.dryRun, "dry-run", false, "list what would be copied and what would run")
	return c
}

func (s *server) retry(ctx context.Context, want *retrySettings) (*retryReport, error) {
	if _, err := s.journalState(ctx); err != nil {
		return nil, err
	}
	pool := ""
	read := func(id events.TurnID) (*retry.Past, error) {
		past, of, err := s.past(ctx, id)
		pool = cmp.Or(pool, of)
		return past, err
	}
	of, past, err := retry.Find(want.turn, read)
	if past != nil && past.Claim == nil {
		return nil, s.missingProgram(ctx, of, read)
	}
	if err != nil {
		return nil, fmt.Errorf("retry: %s", clean(messageOf(err), longestText))
	}
	id, existed, err := retry.Key(of, want.key, read)
	if err != nil {
		return nil, fmt.Errorf("retry: %s", clean(messageOf(err), longestText))
	}
	outline := past.Outline(nil)
	r := &retryReport{
		DryRun: want.dryRun, App: id.App, Chat: id.Chat, Run: id.Run, Turn: of.Turn, Retry: id.Turn, Workflow: past.Claim.WorkflowName,
		Planned: past.Program() != nil, Calls: outline.Calls, NeedsRerun: []string{},
	}
	refused := outline.Known(want.rerun)
	switch {
	case existed:
		r.Existed = true
		return r, s.readRetry(ctx, r, id)
	case refused != nil: // --rerun has what the program lacks, or what cannot run again
		return nil, cli.Usagef("retry: %s", messageOf(refused))
	case !outline.Covers(want.rerun):
		r.NeedsRerun, r.State = outline.Uncertain(), retryNeedsRerun
		return r, nil
	case want.dryRun:
		r.State = retryPossible
		return r, nil
	}
	if r.Message, err = s.publishRetry(ctx, events.NewRetry(id, r.Workflow, of.Turn, outline.Uncertain()), cmp.Or(pool, subjects.DefaultPool)); err != nil {
		return nil, err
	}
	r.State = retryPublished
	return r, s.awaitRetry(ctx, r, id)
}

// missingProgram is the error for a turn without records. If the id identifies a step, it names the turn of the step.
func (s *server) missingProgram(ctx context.Context, id events.TurnID, read func(events.TurnID) (*retry.Past, error)) error {
	for call := range events.StepIDs(id.Turn) {
		of := id
		of.Turn = call
		past, err := read(of)
		if err != nil {
			return fmt.Errorf("retry: %s", clean(messageOf(err), longestText))
		}
		if past.Claim != nil {
			return cli.Usagef("retry: %s is a step: give the turn: %s", clean(id.Turn, maxCallID), argument(call))
		}
	}
	return s.missing(ctx, keyOfTurn(id), id)
}

// past reads a turn, and the pool of its worker.
func (s *server) past(ctx context.Context, id events.TurnID) (past *retry.Past, pool string, err error) {
	key := keyOfTurn(id)
	turn, err := idempotency.Load(ctx, s.journal, key)
	switch {
	case err != nil:
		return nil, "", err
	case turn.Oversized():
		return nil, "", errors.New("the turn has more records than one read returns")
	}
	if turn.Claim != nil && subjects.CheckPool(turn.Claim.Meta.Pool) == nil {
		pool = turn.Claim.Meta.Pool
	}
	records, err := retry.RecordsOf(turn)
	if err != nil {
		return nil, "", err
	}
	past, err = retry.Read(records, func(call, kind string, stored any) (any, error) {
		if _, isBlob := events.BlobOf(stored); !isBlob {
			return stored, nil
		}
		blobs, err := store.NewBlobs(ctx, s.nc, s.js, s.space)
		if err != nil {
			return nil, err
		}
		return blobs.Value(ctx, key.WithCall(subjects.CallOf(call)), kind, stored)
	})
	return past, pool, err
}

func keyOfTurn(id events.TurnID) subjects.Key {
	return subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
}

// publishRetry publishes the event of a retry.
func (s *server) publishRetry(ctx context.Context, e *events.StructuredOutputReady, pool string) (uint64, error) {
	body, err := events.EncodeTurn(e, time.Now())
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	m := &nats.Msg{Subject: s.space.In(pool, events.KindRetry, e.App, e.Workflow, e.Chat), Data: body, Header: nats.Header{}}
	m.Header.Set(nats.MsgIdHdr, events.MsgID(e.InboundKind(), e.TurnID, events.Fingerprint(e)))
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ack, err := s.js.PublishMsg(ctx, m)
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return 0, fmt.Errorf("retry: no stream stores %s: run `turnctl provision`: %w", m.Subject, err)
	}
	if err != nil {
		return 0, fmt.Errorf("retry: publish to %s: %w", m.Subject, err)
	}
	return ack.Sequence, nil
}

// retryPoll is how often the journal is read for the claim of a retry.
const retryPoll = 100 * time.Millisecond

// awaitRetry waits for the claim of a retry, which has the reason if it is refused, for the time of a request.
func (s *server) awaitRetry(ctx context.Context, r *retryReport, id events.TurnID) error {
	waiting, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		if err := s.readRetry(ctx, r, id); err != nil || r.State != retryPublished {
			return err
		}
		if pause.For(waiting, retryPoll) != nil {
			return context.Cause(ctx)
		}
	}
}

// readRetry reads how far a retry is.
func (s *server) readRetry(ctx context.Context, r *retryReport, id events.TurnID) error {
	turn, err := idempotency.LoadEnds(ctx, s.journal, keyOfTurn(id))
	if err != nil {
		return err
	}
	records, err := retry.RecordsOf(turn)
	if err != nil {
		return err
	}
	past, err := retry.Read(records, nil)
	if err != nil {
		return err
	}
	r.note(past)
	return nil
}
