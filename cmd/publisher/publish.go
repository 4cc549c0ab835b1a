//nolint:tagalign // as in package config: the flag comes first and the help last
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/denied"
)

// Publishing: publishFiles connects (open, limit: also for answer and cancel) and passes each file to a
// publication, which checks every event before it publishes it. With --wait a goroutine waits for each turn,
// maxPending of them at most: publishing continues when one has ended.

// publishSettings are the settings that only publish has.
type publishSettings struct {
	NoMsgID bool `flag:"no-msg-id" default:"false" help:"Omit the Nats-Msg-Id, by which the server drops duplicates within a second: then only the workers recognize duplicates."`
	Repeat  int  `flag:"repeat" default:"1" min:"1" max:"1000000" help:"How often to publish each turn. It still runs once."`
}

func publishCommand(env cli.Lookup) *cobra.Command {
	var cfg config.Publisher
	var more publishSettings
	return cli.Command(&cobra.Command{
		Use:   "publish FILE|-...",
		Short: "Publish structured_output_ready and plan_ready events from files or standard input",
		Long: "publish sends the events in files to the workers, unchanged: one JSON object per line, or a JSON array,\n" +
			"or objects that span lines; bare or in an envelope. Publishing a turn again is harmless.\n\n" +
			"A receipt is printed for each turn. With --wait one JSON line per turn is printed instead, in the order in which\n" +
			"they end, with\n" +
			"turn, chat_id, tool_call_id, status, success, code, content, payload, context_keys, attempts, duration_ms.\n\n" +
			"Exit codes, without --wait: 0 every turn was published, 1 at least one was not. With --wait: 0 every turn was published, ended\n" +
			"and succeeded; 1 at least one was not published, failed, or had not ended within --timeout. Both: 2 wrong usage or configuration.",
		Example: "  publisher example | publisher publish - --wait\n  publisher publish turns.jsonl -o json",
		Args:    someFiles,
	}, env, func(cmd *cobra.Command, files []string) error {
		return publishFiles(cmd, &cfg, more, files)
	}, &cfg, &more)
}

// someFiles requires at least one file.
func someFiles(_ *cobra.Command, files []string) error {
	if len(files) == 0 {
		return cli.Usagef("publish: files of turns are required, or - for standard input, for example publisher publish turns.jsonl --wait " +
			"(publisher example prints turns to begin with)")
	}
	return nil
}

// unreadable is the error for a file that cannot be read, with the fix.
func unreadable(name string, err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	return cli.Usagef("publish: cannot read %q: %w: name a file of turns, or - for standard input (publisher example prints turns to begin with)", name, err)
}

// clientName is the name of the connection on the server.
const clientName = "oneturn-publisher"

// maxPending bounds how many turns are waited for at the same time.
const maxPending = 256

func publishFiles(cmd *cobra.Command, cfg *config.Publisher, more publishSettings, files []string) error {
	for _, name := range files { // before a server is connected
		if _, err := os.Stat(name); err != nil && name != "-" {
			return unreadable(name, err)
		}
	}
	stderr := cli.Locked(cmd.ErrOrStderr())
	nc, client, err := open(cfg, more.NoMsgID, "turn", stderr)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := limit(cmd.Context(), cfg, nc)
	defer cancel()
	p := &publication{
		client: client, wait: cfg.Wait, repeat: more.Repeat,
		printer: printer{out: cmd.OutOrStdout(), err: stderr, json: cfg.Format == "json", outcomes: cfg.Wait},
	}
	p.pending.SetLimit(maxPending)
	for _, name := range files {
		if err = p.file(ctx, name, cmd.InOrStdin()); err != nil {
			break
		}
	}
	if err = errors.Join(err, p.pending.Wait()); err != nil {
		return denied.Because(ctx, err)
	}
	if p.events == 0 {
		return fmt.Errorf("publish: no event in %s: write one JSON object per line (publisher example prints some)", strings.Join(files, ", "))
	}
	return p.printer.summary()
}

// open connects. It reports on stderr, once, that no worker answers, and the questions of what is waited for, turns or messages;
// several goroutines write to stderr.
func open(cfg *config.Publisher, noMsgID bool, what string, stderr io.Writer) (*nats.Conn, *oneturn.Client, error) {
	nc, err := config.Connect(cfg.NATS, clientName, cfg.Logger(stderr))
	if err != nil {
		return nil, nil, err
	}
	var once, unclaimed sync.Once
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{
		Prefix: cfg.Prefix, Pool: cfg.Pool, WithoutMsgID: noMsgID,
		OnNoWorker: func(id oneturn.TurnID) {
			once.Do(func() { fmt.Fprintln(stderr, noWorker(cfg, nc, id)) })
		},
		OnUnclaimed: func(id oneturn.TurnID) {
			unclaimed.Do(func() { fmt.Fprintln(stderr, notClaimed(cfg, what, id)) })
		},
		OnQuestion: func(w *api.Question) { fmt.Fprintln(stderr, questionText(w)) },
	})
	if err != nil {
		nc.Close()
	}
	return nc, client, err
}

// limit ends the context after the time limit of the command, or when the server denies a right that
// the command needs, with a cause that specifies it.
func limit(ctx context.Context, cfg *config.Publisher, nc *nats.Conn) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("the command's time limit of %s is over, see --timeout", cfg.Timeout))
	return denied.Context(ctx, nc), stop
}

// publication is one run of the publish command.
type publication struct {
	client  *oneturn.Client
	wait    bool
	repeat  int
	events  int // read, valid or not
	printer printer
	pending errgroup.Group
}

// file publishes the events of a file. Invalid events are reported and counted; an error means that nothing
// more can be published.
func (p *publication) file(ctx context.Context, name string, stdin io.Reader) error {
	in := stdin
	if name == "-" {
		name = "stdin"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return unreadable(name, err)
		}
		defer f.Close()
		in = f
	}
	items := make(chan item)
	go func() { // a separate goroutine, because a read from a terminal cannot be interrupted
		defer close(items)
		for it := range split(in) {
			select {
			case items <- it:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not all was published: %w", name, context.Cause(ctx))
		case it, ok := <-items:
			if !ok {
				return nil
			}
			if err := p.item(ctx, fmt.Sprintf("%s:%d", name, it.line), it); err != nil {
				return err
			}
		}
	}
}

// accept reports whether an event can be published, and prints what is wrong with it otherwise.
func (p *publication) accept(at string, it item) bool {
	if it.err != nil {
		p.printer.failed(at, it.err)
		return false
	}
	turn, err := events.DecodeTurn(it.body)
	switch {
	case err != nil && events.IsMessageKind(kindOf(it.body)):
		err = messageInstead(it.body)
	case err != nil && barePlan(it.body):
		err = fmt.Errorf("%w; this looks like a plan without its event: send {\"kind\": \"plan_ready\", \"plan\": …, \"turn_idempotency_key\": …, \"context\": …}", err)
	case err != nil:
	case !turn.AutoToolMode:
		err = errors.New("auto_tool_mode is not true, so no tool would run: set it to true, or omit the event")
	case turn.Data == nil && turn.Plan:
		err = errors.New("plan is missing or null: set it to the plan, an object")
	case turn.Data == nil:
		err = errors.New("structured_data is missing or null: set it to the output of the agent, an object")
	}
	if err != nil {
		p.printer.failed(at, err)
		return false
	}
	return true
}

// kindOf is the kind of an event, "" if it cannot be read.
func kindOf(body []byte) string {
	m, err := events.Parse(body)
	if err != nil {
		return ""
	}
	return m.Kind
}

// barePlan reports whether a document is the data of a turn for a tool of kind plan or orchestrate.
func barePlan(body []byte) bool {
	document, err := events.Decode(body)
	object, _ := document.(map[string]any)
	_, calls := object["calls"]
	_, steps := object["steps"]
	return err == nil && (calls || steps || object["type"] == "direct_response")
}

// item publishes one event.
func (p *publication) item(ctx context.Context, at string, it item) error {
	p.events++
	if !p.accept(at, it) {
		return nil
	}
	var first oneturn.Receipt
	var turn *oneturn.Turn
	for i := range p.repeat {
		published, receipt, err := p.client.PublishRaw(ctx, it.body)
		switch {
		case errors.Is(err, nats.ErrMaxPayload):
			p.printer.failed(at, fmt.Errorf("%d bytes are more than the server accepts: %w", len(it.body), err))
			return nil
		case err != nil:
			return fmt.Errorf("%s: not published, and neither is the rest (publishing again is harmless): %w", at, err)
		case i == 0:
			turn, first = published, receipt
		}
		if err := p.printer.published(at, turn.TurnID, receipt); err != nil {
			return err
		}
	}
	if p.wait {
		p.pending.Go(func() error {
			response, err := p.client.AwaitTurn(ctx, turn)
			return p.printer.ended(at, turn.TurnID, response, first.Duplicate, err)
		})
	}
	return nil
}
