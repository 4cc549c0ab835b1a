package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// All subcommands read dead letters here: deadLetters lists the headers of the newest, open reads one with its
// bytes, and content reads the bytes from their blob if they were too large for the dead letter. What a dead
// letter names comes from clients: blobs are only read if they belong to it.

func (a *app) dead() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "List, show, redrive and drop dead letters",
		Long: `Dead letters are messages that no worker could handle, stored with the reason. They keep the received
bytes, except for answers of people, which may be secret. Their number per tenant is limited: newer
dead letters replace the oldest of the tenant. Redrive them after the cause is fixed, or drop them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Usagef("dead: ls, show, redrive or drop: see %s --help", c.CommandPath())
		},
	}
	c.AddCommand(a.deadLs(), a.deadShow(), a.deadRedrive(), a.deadDrop())
	return c
}

// deadLetter has the headers of a dead letter.
type deadLetter struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Error   string    `json:"error,omitempty"`
	App     string    `json:"app_id,omitempty"` // "" when it could not be read
	Kind    string    `json:"kind"`
	Chat    string    `json:"chat_id,omitempty"`    // from its contents, if they are readable, else from its subject
	Run     string    `json:"run_id,omitempty"`     // this and the next two are "" when they could not be read
	Turn    string    `json:"turn,omitempty"`       // turn key
	Message string    `json:"message_id,omitempty"` // of what an agent or a user has written, in place of the turn
	Subject string    `json:"subject"`              // on which the message was received
	Source  uint64    `json:"source_seq"`           // of the message in its stream
	Bytes   int       `json:"bytes"`
	Blob    string    `json:"blob,omitempty"`     // with the bytes, "" if the dead letter has them
	SHA256  string    `json:"sha256,omitempty"`   // of bytes that are not in the dead letter; not of answers
	NotKept string    `json:"not_kept,omitempty"` // why its bytes were discarded

	tenant, kind string // tokens
}

// deadLetter reads a dead letter; headers that cannot be read are left empty.
func (s *server) deadLetter(subject string, header nats.Header, seq uint64, at time.Time, size int) deadLetter {
	l := deadLetter{
		Seq: seq, Time: at.UTC(), Bytes: size,
		Reason: header.Get(deadletter.HeaderReason), Error: header.Get(deadletter.HeaderError),
		Subject: header.Get(deadletter.HeaderSubject), Blob: header.Get(deadletter.HeaderBlob),
		SHA256: header.Get(deadletter.HeaderSHA256), NotKept: header.Get(deadletter.HeaderNotKept),
	}
	if held := header.Get(deadletter.HeaderSize); held != "" {
		l.Bytes, _ = strconv.Atoi(held)
	}
	l.Source, _ = strconv.ParseUint(header.Get(deadletter.HeaderSequence), 10, 64)
	if app, kind, ok := s.space.ParseDead(subject); ok {
		l.App, l.Kind, l.tenant, l.kind = shown(app), shown(kind), app, kind
	}
	if in, ok := s.space.ParseIn(l.Subject); ok {
		l.Chat = shown(in.Chat)
	}
	return l
}

// notKept is the error for a dead letter without bytes.
func (l *deadLetter) notKept() error {
	return fmt.Errorf("its bytes are not kept: %s: have its sender send it again", clean(l.NotKept, maxNotKept))
}

// maxNotKept is how much of the reason is shown, in bytes.
const maxNotKept = 1100

// deadFilter selects dead letters.
type deadFilter struct{ app, reason string }

func (f *deadFilter) match(l *deadLetter) bool {
	return (f.reason == "" || f.reason == l.Reason) && (f.app == "" || l.tenant == subjects.Token(f.app))
}

func (f *deadFilter) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.app, "app", "", "only dead letters of this tenant")
	c.Flags().StringVar(&f.reason, "reason", "", "only dead letters with this reason, for example turn_conflict")
}

func (s *server) deadStream(ctx context.Context) (jetstream.Stream, error) {
	stream, err := s.js.Stream(ctx, s.space.DeadStream())
	if err != nil {
		return nil, fmt.Errorf("open the dead letters %s: %w", s.space.DeadStream(), unprovisioned(err))
	}
	return stream, nil
}

// deadLetters returns the newest dead letters, the newest first, headers only: at most limit, or
// all when it is 0. More reports whether there are older ones.
func (s *server) deadLetters(ctx context.Context, f deadFilter, limit int) (found []deadLetter, more bool, err error) {
	stream, err := s.deadStream(ctx)
	if err != nil {
		return nil, false, err
	}
	read := func(from, to uint64) (enough bool, err error) {
		found = found[:0]
		headers := jsapi.Headers{JS: s.js, Timeout: s.timeout}
		err = headers.Read(ctx, s.space.DeadStream(), from, to, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
			size, _ := strconv.Atoi(m.Headers().Get("Nats-Msg-Size"))
			l := s.deadLetter(m.Subject(), m.Headers(), meta.Sequence.Stream, meta.Timestamp, size)
			if f.match(&l) {
				found = append(found, l)
			}
		})
		return len(found) > limit, unprovisioned(err)
	}
	if err := backwards(&stream.CachedInfo().State, limit == 0, nil, read); err != nil {
		return nil, false, err
	}
	if more = limit > 0 && len(found) > limit; more {
		found = found[len(found)-limit:]
	}
	slices.Reverse(found)
	return found, more, nil
}

// errNoDeadLetter is returned for a sequence without a dead letter.
var errNoDeadLetter = errors.New("no such dead letter: it was redriven, dropped or has expired, or never existed")

// open reads one dead letter with its bytes.
func (s *server) open(ctx context.Context, stream jetstream.Stream, seq uint64) (deadLetter, nats.Header, []byte, error) {
	m, err := stream.GetMsg(ctx, seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return deadLetter{}, nil, nil, errNoDeadLetter
	case err != nil:
		return deadLetter{}, nil, nil, fmt.Errorf("read dead letter %d: %w", seq, err)
	}
	return s.deadLetter(m.Subject, m.Header, seq, m.Time, len(m.Data)), m.Header, m.Data, nil
}

// content returns the bytes of the message, read from their blob if they are in one.
func (s *server) content(ctx context.Context, l *deadLetter, data []byte) ([]byte, error) {
	switch {
	case l.NotKept != "":
		return nil, l.notKept()
	case l.Blob == "":
		return data, nil
	case l.Blob != subjects.DeadBlob(l.tenant, l.kind, l.Source):
		return nil, fmt.Errorf("blob %.200q does not belong to a dead letter", l.Blob)
	}
	blobs, err := store.NewBlobs(ctx, s.nc, s.js, s.space)
	if err != nil {
		return nil, fmt.Errorf("open the blobs %s: %w", s.space.BlobsBucket(), unprovisioned(err))
	}
	data, err = blobs.Read(ctx, l.Blob, l.SHA256)
	switch {
	case errors.Is(err, store.ErrBlobGone):
		return nil, fmt.Errorf("its %d bytes (SHA-256 %.64q) are deleted: a newer dead letter of the same tenant and kind replaced them, or the retention of blobs is over", l.Bytes, l.SHA256)
	case err != nil:
		return nil, fmt.Errorf("read blob %s: %w", l.Blob, err)
	}
	return data, nil
}

// sequences reads the sequences of a command line.
func sequences(command string, args []string) ([]uint64, error) {
	seqs := make([]uint64, len(args))
	for i, arg := range args {
		var err error
		if seqs[i], err = strconv.ParseUint(arg, 10, 64); err != nil || seqs[i] == 0 {
			return nil, cli.Usagef("%s: invalid sequence %.40q: copy it from turnctl dead ls", command, arg)
		}
	}
	return seqs, nil
}

// pool returns the pool of an inbound subject, and the default pool for other subjects.
func (s *server) pool(subject string) string {
	if in, ok := s.space.ParseIn(subject); ok && subjects.CheckPool(in.Pool) == nil {
		return in.Pool
	}
	return subjects.DefaultPool
}
