package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/plural"
)

// Show prints the headers of one dead letter and, with --payload, its bytes: as JSON if they are JSON, else in
// base64 for programs and escaped line by line for people.

func (a *app) deadShow() *cobra.Command {
	var cfg config.Turnctl
	var payload bool
	c := a.command(&cobra.Command{
		Use:   "show SEQ",
		Short: "Show a dead letter",
		Long: `Show prints a dead letter: its reason, the subject and sequence of the message, and its headers. The
bytes are shown with --payload only, from their blob if they were too large for the dead letter.`,
		Example: `  turnctl dead show 17
  turnctl dead show 17 --payload`,
		Args: cli.Arguments(1, 1, "the sequence of a dead letter"),
	}, &cfg, func(ctx context.Context, args []string) error {
		seqs, err := sequences("dead show", args)
		if err != nil {
			return err
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		d, err := s.deadLetterFacts(ctx, seqs[0], payload)
		if err != nil {
			return err
		}
		return a.print(cfg.Format, d, d.text)
	})
	c.Flags().BoolVar(&payload, "payload", false, "also show the bytes of the message")
	return c
}

// deadLetterFacts is the output of turnctl dead show.
type deadLetterFacts struct {
	deadLetter

	Headers nats.Header     `json:"headers"`
	Payload json.RawMessage `json:"payload,omitempty"`        // with --payload, if it is JSON
	Base64  string          `json:"payload_base64,omitempty"` // with --payload, if it is not
}

func (s *server) deadLetterFacts(ctx context.Context, seq uint64, payload bool) (*deadLetterFacts, error) {
	stream, err := s.deadStream(ctx)
	if err != nil {
		return nil, err
	}
	l, header, data, err := s.open(ctx, stream, seq)
	if err != nil {
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	d := &deadLetterFacts{deadLetter: l, Headers: header}
	data, err = s.content(ctx, &l, data)
	if err == nil {
		d.identify(data)
	}
	switch {
	case !payload: // without its bytes a dead letter has no ids
		return d, nil
	case err != nil:
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	if json.Valid(data) {
		d.Payload = data
	} else {
		d.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	return d, nil
}

func (d *deadLetterFacts) text(w io.Writer) {
	fmt.Fprintf(w, "dead letter %d: %s\n%s\n\n", d.Seq, id(d.Reason), wrap(clean(d.Error, 1100), 0))
	size := plural.Of(d.Bytes, "byte")
	if d.Blob != "" {
		size += " in blob " + clean(d.Blob, 200)
	}
	if d.NotKept != "" {
		size += ", not kept: " + clean(d.NotKept, maxNotKept)
	}
	rows := [][]string{
		{"time", stamp(d.Time)},
		{"app", id(d.App)},
		{"kind", id(d.Kind)},
		{"chat", id(d.Chat)},
	}
	for _, of := range [][]string{{"run", d.Run}, {"message", d.Message}, {"turn", d.Turn}} {
		if of[1] != "" {
			rows = append(rows, []string{of[0], id(of[1])})
		}
	}
	rows = append(rows, []string{"subject", clean(d.Subject, 512)}, []string{"source", strconv.FormatUint(d.Source, 10)}, []string{"size", size})
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		if strings.HasPrefix(name, "Oneturn-") || strings.HasPrefix(name, "Nats-") {
			continue // shown above, or added by the server
		}
		for _, value := range d.Headers[name] {
			rows = append(rows, []string{clean(name, 64), clean(value, 200)})
		}
	}
	table(w, 2, rows)
	if len(d.Payload) > 0 {
		fmt.Fprintln(w)
		valueText(w, d.Payload)
	}
	if d.Base64 != "" {
		data, err := base64.StdEncoding.DecodeString(d.Base64)
		if err != nil {
			return // encoded above
		}
		fmt.Fprintln(w)
		for line := range strings.SplitSeq(string(data), "\n") {
			fmt.Fprintln(w, "  "+clean(line, len(line)))
		}
	}
}
