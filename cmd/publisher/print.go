package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// What publish, answer and cancel print: a receipt for each message, or with --wait an outcome for each turn, as a
// JSON line or for people. One printer serves all goroutines that wait; it also counts, for the summary and the
// exit code. Texts at the end of the file name the fix when nothing happens to a turn.

// receipt is the JSON of one published message.
type receipt struct {
	Turn      string `json:"turn"`
	ChatID    string `json:"chat_id"`
	RunID     string `json:"run_id,omitempty"`
	AppID     string `json:"app_id"`
	Sequence  uint64 `json:"sequence"`            // in the inbound stream
	Duplicate bool   `json:"duplicate,omitempty"` // the server had it already and dropped it
}

// outcome is the JSON of one turn with --wait.
type outcome struct {
	Turn        string      `json:"turn"`
	ChatID      string      `json:"chat_id"`
	RunID       string      `json:"run_id,omitempty"`
	AppID       string      `json:"app_id"`
	ToolCallID  string      `json:"tool_call_id,omitempty"`
	Status      string      `json:"status"` // ok, error; pending if the wait ended first; conflict if the key has other data
	Success     bool        `json:"success"`
	Code        events.Code `json:"code,omitempty"`
	Content     string      `json:"content"`
	Payload     any         `json:"payload"`
	ContextKeys []string    `json:"context_keys,omitempty"` // context variables that the tool has changed
	Attempts    int         `json:"attempts"`
	DurationMS  int64       `json:"duration_ms"`         // in the tool
	Duplicate   bool        `json:"duplicate,omitempty"` // the server had it already and dropped it
}

// Statuses of turns without a response.
const (
	statusPending  = "pending"  // not ended before the time limit
	statusConflict = "conflict" // its key was used before with other data: it is never run
)

// printer writes the outcome of each event, and counts.
type printer struct {
	out, err io.Writer
	json     bool
	outcomes bool // outcomes instead of receipts
	cancels  bool // the messages are cancel requests

	mu                                 sync.Mutex
	messages, good, bad, open, refused int // open are part of bad
}

// failed reports an event that was not published.
func (p *printer) failed(at string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused++
	fmt.Fprintf(p.err, "%s: not published: %v\n", at, err)
}

// published reports a message that the server has stored.
func (p *printer) published(at string, id oneturn.TurnID, r oneturn.Receipt) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages++
	switch {
	case p.outcomes:
		return nil
	case p.json:
		return cli.WriteJSON(p.out, receipt{id.Turn, id.Chat, id.Run, id.App, r.Sequence, r.Duplicate}, "")
	}
	known := ""
	if r.Duplicate {
		known = ", dropped: the same message was stored before"
	}
	format := "%s: turn %s of chat %s is #%d%s\n"
	if p.cancels {
		format = "%s: the end of turn %s of chat %s is requested with message %d%s\n"
	}
	if _, err := fmt.Fprintf(p.out, format, at, id.Turn, id.Chat, r.Sequence, known); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// waits reports that the end of a turn was requested and is awaited: that can take long, and nothing else is printed meanwhile.
func (p *printer) waits(id oneturn.TurnID, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := ""
	if most > 0 {
		limit = ", for " + most.String() + " at most (--timeout)"
	}
	fmt.Fprintf(p.err, "cancel: the end of turn %s of chat %s is requested; waiting for it%s\n", cli.ShellWord(id.Turn), cli.ShellWord(id.Chat), limit)
}

// ended reports the outcome of a turn, or that it has not ended.
func (p *printer) ended(at string, id oneturn.TurnID, r *oneturn.Response, duplicate bool, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := outcome{Turn: id.Turn, ChatID: id.Chat, RunID: id.Run, AppID: id.App, Duplicate: duplicate}
	switch {
	case errors.Is(err, oneturn.ErrConflict):
		o.Status, o.Content = statusConflict, conflictText(id)
		fmt.Fprintf(p.err, "%s: %s\n", at, o.Content)
	case err != nil:
		o.Status, o.Content = statusPending, strings.TrimPrefix(err.Error(), fmt.Sprintf("await turn %.80q of chat %.80q: ", id.Turn, id.Chat))
		p.open++
		fmt.Fprintf(p.err, "%s: no response of turn %s of chat %s yet: %s\n", at, cli.ShellWord(id.Turn), cli.ShellWord(id.Chat), o.Content)
	default:
		o.ToolCallID, o.Status, o.Success, o.Code, o.Content = r.ToolCallID, events.StatusOK, r.Success, r.Code, r.Content
		if r.Code != "" {
			o.Status = events.StatusError
		}
		o.Payload, o.ContextKeys, o.Attempts, o.DurationMS = r.Payload, r.ContextKeys, r.Attempts, r.Duration.Milliseconds()
	}
	if o.Success {
		p.good++
	} else {
		p.bad++
	}
	return cli.WriteJSON(p.out, o, "")
}

// conflictText reports that a turn is never run, with the fix.
func conflictText(id oneturn.TurnID) string {
	return fmt.Sprintf("turn %s of chat %s is not run: its key was used before with other data. Publish it with another turn_idempotency_key or "+
		"run_id, or set on_key_reuse: run in its workflow; turnctl show %s %s prints the earlier turn",
		cli.ShellWord(id.Turn), cli.ShellWord(id.Chat), cli.ShellWord(id.Chat), cli.ShellWord(id.Turn))
}

// summary ends the output. Its error is the error of the command.
func (p *printer) summary() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.json {
		fmt.Fprintf(p.err, "published %d", p.messages)
		if p.outcomes {
			fmt.Fprintf(p.err, ": %d succeeded, %d failed, %d still open", p.good, p.bad-p.open, p.open)
		}
		fmt.Fprintf(p.err, "; %d not published\n", p.refused)
	}
	if p.bad+p.refused > 0 {
		return cli.ErrReported
	}
	return nil
}

// noWorker reports that no worker answers for a turn, with the fix.
func noWorker(cfg *config.Publisher, nc *nats.Conn, id oneturn.TurnID) string {
	subject := cfg.Prefix
	if space, err := subjects.New(cfg.Prefix); err == nil {
		subject = space.API(id.App, api.VerbTurn)
	}
	return fmt.Sprintf("no worker answers on %s: start one with: worker --workflows DIR --nats %s", subject, config.URL(nc.ConnectedUrlRedacted()))
}

// notClaimed reports that workers answer and none claims a turn or a message, with possible causes.
func notClaimed(cfg *config.Publisher, what string, id oneturn.TurnID) string {
	return fmt.Sprintf("no worker of pool %s has claimed %s %s of chat %s yet: check that the pool has workers (turnctl doctor), that "+
		"workflow_name is correct and that a worker serves it (a turn of an unknown workflow ends after the worker's "+
		"--binding-grace); or all slots are in use",
		cfg.Pool, what, cli.ShellWord(id.Turn), cli.ShellWord(id.Chat))
}
