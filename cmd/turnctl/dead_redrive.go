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
)

// redriveSettings says which letters go where, and as what.
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
		Short: "Give dead letters to the workers again",
		Long: `Redrive publishes the bytes of dead letters again, on the subject that they came on, and then
deletes the letters. It names the same turns: one that has run meanwhile does not run again. Ended
between publish and deletion, or run twice, it sends a duplicate, which is harmless.

A turn_conflict comes back, because its turn key belongs to other data. With --new-run it becomes a
turn of its own: the run id joins its identity. Letters that can only come back (undecodable,
missing_field, turn_conflict without --new-run, and subject_mismatch without --fix-subject or
--subject) are refused, and skipped by --all, unless you say --force.`,
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
	want.flags(c, &want.app, &want.reason)
	c.Flags().BoolVar(&want.all, "all", false, "all letters, the oldest first; with --app and --reason only those")
	c.Flags().StringVar(&want.subject, "subject", "", "publish on this inbound subject instead of their own")
	c.Flags().BoolVar(&want.fixSubject, "fix-subject", false, "publish on the subject that their contents call for (subject_mismatch)")
	c.Flags().StringVar(&want.newRun, "new-run", "", "make it a turn of its own by this run id (turn_conflict)")
	c.Flags().BoolVar(&want.force, "force", false, "redrive letters too that can only come back")
	return c
}

// whyFutile says why a letter can only come back, or nothing.
func (r *redriveSettings) whyFutile(l *deadLetter) string {
	switch {
	case l.NotKept != "":
		return l.notKept().Error()
	case r.force:
		return ""
	case l.Reason == "undecodable" || l.Reason == "missing_field":
		return "its bytes are " + l.Reason + " and stay so: it would come back; --force redrives it all the same"
	case l.Reason == "turn_conflict" && r.newRun == "":
		return "its turn key belongs to other data: it would come back; --new-run ID makes it a turn of its own, --force redrives it all the same"
	case l.Reason == "subject_mismatch" && !r.fixSubject && r.subject == "":
		return "its subject does not match its contents: it would come back; --fix-subject publishes it where it belongs, --force redrives it all the same"
	}
	return ""
}

func (r *redriveSettings) check(s *server, seqs []uint64) error {
	_, inbound := s.space.ParseIn(r.subject)
	switch {
	case r.all == (len(seqs) > 0):
		return cli.Usagef("dead redrive: name letters by their sequences, or --all")
	case !r.all && r.deadFilter != (deadFilter{}):
		return cli.Usagef("dead redrive: --app and --reason go with --all")
	case r.subject != "" && r.fixSubject:
		return cli.Usagef("dead redrive: --subject or --fix-subject, not both")
	case r.subject != "" && (!inbound || strings.ContainsAny(r.subject, "*> \t\r\n")):
		return cli.Usagef("dead redrive: --subject is %.300q, want %s.in.<pool>.<kind>.<app>.<workflow>.<chat> in tokens", r.subject, s.space.Prefix())
	}
	return nil
}

// States of a letter that was to be redriven or dropped.
const (
	handledRedriven = "redriven"
	handledDropped  = "dropped"
	handledSkipped  = "skipped"
	handledGone     = "gone"
	handledFailed   = "failed"
)

// handled is what became of a letter.
type handled struct {
	Seq     uint64 `json:"seq"`
	State   string `json:"state"`
	Subject string `json:"subject,omitempty"`
	InSeq   uint64 `json:"in_seq,omitempty"` // of the message in the inbound stream
	Why     string `json:"why,omitempty"`    // it was skipped
	Error   string `json:"error,omitempty"`
}

// handledDeadLetters is the outcome of turnctl dead redrive and drop.
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

// failed is cli.ErrTold if a letter is not as it was to be.
func (h *handledDeadLetters) failed() error {
	if slices.ContainsFunc(h.Letters, func(one handled) bool { return one.Error != "" }) {
		return cli.ErrTold
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

// redrive publishes letters and deletes them. Those that come back meanwhile are other ones.
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

// deleteDeadLetter deletes a letter; one that is gone already is no error.
func deleteDeadLetter(ctx context.Context, remove func(context.Context, uint64) error, seq uint64) error {
	if err := remove(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return fmt.Errorf("it was published, but not deleted: %w", err)
	}
	return nil
}

// publishDeadLetter gives the bytes of a letter to the workers again. It returns when the inbound
// stream has stored them: only then may the letter go.
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
	// No header is added: the message may be as large as the server takes.
	ack, err := s.js.PublishMsg(ctx, m)
	switch {
	case err != nil:
		return one, fmt.Errorf("publish on %s: %w", one.Subject, err)
	case ack.Stream != s.space.InStream():
		return one, fmt.Errorf("publish on %s: it went to stream %s, want %s", one.Subject, ack.Stream, s.space.InStream())
	}
	one.InSeq = ack.Sequence
	return one, nil
}

// target is the subject that a letter is published on.
func (s *server) target(l *deadLetter, data []byte, want *redriveSettings) (string, error) {
	switch _, inbound := s.space.ParseIn(l.Subject); {
	case want.subject != "":
		return want.subject, nil
	case want.fixSubject:
		return s.subjectOf(data, s.pool(l.Subject))
	case !inbound:
		return "", fmt.Errorf("it came on %.300s, which is no inbound subject: --fix-subject or --subject gives it one", strconv.Quote(l.Subject))
	}
	return l.Subject, nil
}

// subjectOf returns the subject that a body belongs on.
func (s *server) subjectOf(data []byte, pool string) (string, error) {
	m, err := events.Parse(data)
	if err != nil {
		return "", fmt.Errorf("--fix-subject: %w", err)
	}
	switch m.Kind {
	case "", events.KindStructuredOutputReady:
		t, err := m.Turn()
		if err != nil {
			return "", fmt.Errorf("--fix-subject: %w", err)
		}
		return s.space.In(pool, events.KindStructuredOutputReady, t.App, t.Workflow, t.Chat), nil
	case events.KindCancel:
		c, err := m.Cancel()
		if err != nil {
			return "", fmt.Errorf("--fix-subject: %w", err)
		}
		return s.space.In(pool, events.KindCancel, c.App, c.Workflow, c.Chat), nil
	}
	return "", fmt.Errorf("--fix-subject: kind %.80q has no subject of its own", m.Kind)
}

func (a *app) deadDrop() *cobra.Command {
	var cfg config.Turnctl
	var yes bool
	c := a.command(&cobra.Command{
		Use:   "drop SEQ… --yes",
		Short: "Delete dead letters for good",
		Long: `Drop overwrites and deletes dead letters. Their turns, if they name any, never run. The blob of
a large one stays until it has aged out.`,
		Example: `  turnctl dead drop 17 18 --yes`,
	}, &cfg, func(ctx context.Context, args []string) error {
		seqs, err := sequences("dead drop", args)
		switch {
		case err != nil:
			return err
		case len(seqs) == 0:
			return cli.Usagef("dead drop: name letters by their sequences: see turnctl dead ls")
		case !yes:
			return cli.Usagef("dead drop: this deletes %s for good: say --yes", plural(len(seqs), "letter"))
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
	c.Flags().BoolVar(&yes, "yes", false, "yes, delete them")
	return c
}
