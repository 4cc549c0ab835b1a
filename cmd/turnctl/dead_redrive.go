package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
)

// Redrive publishes first and deletes after the inbound stream has stored the message, so that an interruption
// leaves a duplicate and loses nothing. Dead letters that are certain to fail again are refused (whyFutile). Drop
// only deletes. Both print what happened to each dead letter.

// redriveSettings selects dead letters and the subject and run id to publish them with.
type redriveSettings struct {
	deadFilter

	all        bool
	subject    string
	fixSubject bool
	newRun     string
	force      bool
}

func (a *app) deadRedrive() *cobra.Command {
	var cfg config.Turnctl
	var want redriveSettings
	c := a.command(&cobra.Command{
		Use:   "redrive SEQ… | --all",
		Short: "Publish dead letters to the workers again",
		Long: `Redrive publishes the bytes of dead letters again, on the subject where they were received, and then
deletes the dead letters. The turns are the same: a turn that has run meanwhile does not run again. If
the command is interrupted between publish and deletion, or run twice, it sends a harmless duplicate.

A turn_conflict fails again, because its turn key belongs to other data. With --new-run it becomes a
separate turn: the run id is part of its identity. Dead letters that will fail again (undecodable,
missing_field, turn_conflict without --new-run, and subject_mismatch without --fix-subject or
--subject) are refused, and skipped by --all, unless --force is set.`,
		Example: `  turnctl dead redrive 17 18
  turnctl dead redrive --all --reason undeliverable
  turnctl dead redrive 17 --new-run redrive-2026-01-02
  turnctl dead redrive 19 --fix-subject`,
	}, &cfg, func(ctx context.Context, args []string) error {
		seqs, err := sequences("dead redrive", args)
		if err != nil {
			return err
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		if err := want.check(s, seqs); err != nil {
			return err
		}
		out, err := s.redrive(ctx, seqs, &want)
		if err != nil && len(out.Letters) == 0 {
			return err
		}
		return errors.Join(err, a.print(cfg.Format, out, out.text), out.failed())
	})
	want.flags(c)
	c.Flags().BoolVar(&want.all, "all", false, "all dead letters, the oldest first; with --app and --reason only those")
	c.Flags().StringVar(&want.subject, "subject", "", "publish on this inbound subject instead of the original one")
	c.Flags().BoolVar(&want.fixSubject, "fix-subject", false, "publish on the subject that matches their contents (subject_mismatch)")
	c.Flags().StringVar(&want.newRun, "new-run", "", "make it a separate turn with this run id (turn_conflict)")
	c.Flags().BoolVar(&want.force, "force", false, "also redrive dead letters that will fail again")
	return c
}

// whyFutile is the reason why a dead letter would fail again, or "".
func (r *redriveSettings) whyFutile(l *deadLetter) string {
	switch {
	case l.NotKept != "":
		return l.notKept().Error()
	case r.force:
		return ""
	case l.Reason == "undecodable" || l.Reason == "missing_field":
		return "its bytes are " + l.Reason + ": redriving fails again; --force redrives it anyway"
	case l.Reason == "turn_conflict" && r.newRun == "":
		return "its turn key belongs to other data: redriving fails again; --new-run ID makes it a separate turn, --force redrives it anyway"
	case l.Reason == "subject_mismatch" && !r.fixSubject && r.subject == "":
		return "its subject does not match its contents: redriving fails again; --fix-subject publishes it on the matching subject, --force redrives it anyway"
	}
	return ""
}

func (r *redriveSettings) check(s *server, seqs []uint64) error {
	_, inbound := s.space.ParseIn(r.subject)
	switch {
	case r.all == (len(seqs) > 0):
		return cli.Usagef("dead redrive: sequences of dead letters or --all are required, not both: see turnctl dead ls")
	case !r.all && r.deadFilter != (deadFilter{}):
		return cli.Usagef("dead redrive: --app and --reason require --all")
	case r.subject != "" && r.fixSubject:
		return cli.Usagef("dead redrive: --subject and --fix-subject are mutually exclusive: set one")
	case r.subject != "" && (!inbound || strings.ContainsAny(r.subject, "*> \t\r\n")):
		return cli.Usagef("dead redrive: invalid --subject %.300q: use %s.in.<pool>.<kind>.<app>.<workflow>.<chat> with encoded tokens", r.subject, s.space.Prefix())
	}
	return nil
}

// Outcomes of redriving or dropping a dead letter.
const (
	handledRedriven = "redriven"
	handledDropped  = "dropped"
	handledSkipped  = "skipped"
	handledGone     = "gone"
	handledFailed   = "failed"
)

// handled is the outcome for one dead letter.
type handled struct {
	Seq     uint64 `json:"seq"`
	State   string `json:"state"`
	Subject string `json:"subject,omitempty"`
	InSeq   uint64 `json:"in_seq,omitempty"` // of the message in the inbound stream
	Why     string `json:"why,omitempty"`    // it was skipped
	Error   string `json:"error,omitempty"`
}

// handledDeadLetters is the output of turnctl dead redrive and drop.
type handledDeadLetters struct {
	Letters []handled `json:"letters"`
}

func (h *handledDeadLetters) add(one handled, err error) {
	switch {
	case errors.Is(err, errNoDeadLetter):
		one.State, one.Error = handledGone, err.Error()
	case err != nil:
		one.State, one.Error = handledFailed, err.Error()
	}
	h.Letters = append(h.Letters, one)
}

// failed is cli.ErrReported if a dead letter could not be redriven or dropped.
func (h *handledDeadLetters) failed() error {
	if slices.ContainsFunc(h.Letters, func(one handled) bool { return one.Error != "" }) {
		return cli.ErrReported
	}
	return nil
}

func (h *handledDeadLetters) text(w io.Writer) {
	if len(h.Letters) == 0 {
		fmt.Fprintln(w, "no dead letters")
	}
	for _, one := range h.Letters {
		fmt.Fprintf(w, "%d %s", one.Seq, one.State)
		if one.InSeq > 0 {
			fmt.Fprintf(w, " as message %d on %s", one.InSeq, clean(one.Subject, 512))
		}
		if why := one.Why + one.Error; why != "" {
			fmt.Fprintf(w, ": %s", clean(why, 1100))
		}
		fmt.Fprintln(w)
	}
}

// redrive publishes dead letters and deletes them. Those that fail again meanwhile have new sequences.
func (s *server) redrive(ctx context.Context, seqs []uint64, want *redriveSettings) (*handledDeadLetters, error) {
	out := &handledDeadLetters{Letters: []handled{}}
	stream, err := s.deadStream(ctx)
	if err != nil {
		return out, err
	}
	if want.all {
		found, _, err := s.deadLetters(ctx, want.deadFilter, 0)
		if err != nil {
			return out, err
		}
		for _, l := range slices.Backward(found) {
			seqs = append(seqs, l.Seq)
		}
	}
	for _, seq := range seqs {
		one, err := s.publishDeadLetter(ctx, stream, seq, want)
		if err == nil && one.State == handledRedriven {
			err = deleteDeadLetter(ctx, stream.DeleteMsg, seq)
		}
		if err != nil && ctx.Err() != nil {
			return out, err
		}
		out.add(one, err)
	}
	return out, nil
}

// deleteDeadLetter deletes a dead letter; one that was already deleted is not an error.
func deleteDeadLetter(ctx context.Context, remove func(context.Context, uint64) error, seq uint64) error {
	if err := remove(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return fmt.Errorf("it was published, but not deleted: %w", err)
	}
	return nil
}

// publishDeadLetter publishes the bytes of a dead letter to the workers again. It returns when the inbound
// stream has stored them: only then may the dead letter be deleted.
func (s *server) publishDeadLetter(ctx context.Context, stream jetstream.Stream, seq uint64, want *redriveSettings) (handled, error) {
	one := handled{Seq: seq, State: handledRedriven}
	l, header, data, err := s.open(ctx, stream, seq)
	if err != nil {
		return one, err
	}
	switch why := want.whyFutile(&l); {
	case why != "" && want.all:
		one.State, one.Why = handledSkipped, why
		return one, nil
	case why != "":
		return one, errors.New(why)
	}
	if data, err = s.content(ctx, &l, data); err != nil {
		return one, err
	}
	if one.Subject, err = s.target(&l, data, want); err != nil {
		return one, err
	}
	if want.newRun != "" {
		if data, err = events.WithRun(data, want.newRun); err != nil {
			return one, fmt.Errorf("--new-run: %w", err)
		}
	}
	m := &nats.Msg{Subject: one.Subject, Header: nats.Header{}, Data: data}
	for name, values := range header {
		if lower := strings.ToLower(name); !strings.HasPrefix(lower, "nats-") && !strings.HasPrefix(lower, "oneturn-") {
			m.Header[name] = values
		}
	}
	// No header is added: the message may already have the maximum size of the server.
	ack, err := s.publish(ctx, m)
	switch {
	case err != nil:
		return one, fmt.Errorf("publish on %s: %w", one.Subject, err)
	case ack.Stream != s.space.InStream():
		return one, fmt.Errorf("publish on %s: it went to stream %s, want %s", one.Subject, ack.Stream, s.space.InStream())
	}
	one.InSeq = ack.Sequence
	return one, nil
}

// target is the subject that a dead letter is published on.
func (s *server) target(l *deadLetter, data []byte, want *redriveSettings) (string, error) {
	switch _, inbound := s.space.ParseIn(l.Subject); {
	case want.subject != "":
		return want.subject, nil
	case want.fixSubject:
		return s.subjectOf(data, s.pool(l.Subject))
	case !inbound:
		return "", fmt.Errorf("received on %.300s, not an inbound subject: set --subject or --fix-subject", strconv.Quote(l.Subject))
	}
	return l.Subject, nil
}

// subjectOf returns the subject that matches a body.
func (s *server) subjectOf(data []byte, pool string) (string, error) {
	m, err := events.Parse(data)
	if err != nil {
		return "", fmt.Errorf("--fix-subject: %w", err)
	}
	switch m.Kind {
	case "", events.KindStructuredOutputReady, events.KindPlanReady, events.KindRetry:
		t, err := events.DecodeTurn(data)
		if err != nil {
			return "", fmt.Errorf("--fix-subject: %w", err)
		}
		return s.space.In(pool, t.InboundKind(), t.App, t.Workflow, t.Chat), nil
	case events.KindCancel:
		c, err := m.Cancel()
		if err != nil {
			return "", fmt.Errorf("--fix-subject: %w", err)
		}
		return s.space.In(pool, events.KindCancel, c.App, c.Workflow, c.Chat), nil
	}
	return "", fmt.Errorf("--fix-subject: messages of kind %.80q are not published by clients: use --subject", m.Kind)
}

func (a *app) deadDrop() *cobra.Command {
	var cfg config.Turnctl
	var yes bool
	c := a.command(&cobra.Command{
		Use:   "drop SEQ… --yes",
		Short: "Delete dead letters permanently",
		Long: `Drop overwrites and deletes dead letters. Their turns, if they name any, never run. The blob of
a large one stays until its retention is over.`,
		Example: `  turnctl dead drop 17 18 --yes`,
	}, &cfg, func(ctx context.Context, args []string) error {
		seqs, err := sequences("dead drop", args)
		switch {
		case err != nil:
			return err
		case len(seqs) == 0:
			return cli.Usagef("dead drop: sequences of dead letters are required: see turnctl dead ls")
		case !yes:
			return cli.Usagef("dead drop: this permanently deletes %s: confirm with --yes", plural.Of(len(seqs), "dead letter"))
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		stream, err := s.deadStream(ctx)
		if err != nil {
			return err
		}
		out := &handledDeadLetters{Letters: []handled{}}
		for _, seq := range seqs {
			_, _, _, err := s.open(ctx, stream, seq)
			if err == nil {
				err = stream.SecureDeleteMsg(ctx, seq)
			}
			out.add(handled{Seq: seq, State: handledDropped}, err)
		}
		return errors.Join(a.print(cfg.Format, out, out.text), out.failed())
	})
	c.Flags().BoolVar(&yes, "yes", false, "confirm the deletion")
	return c
}
