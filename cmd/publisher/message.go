//nolint:tagalign // as in package config: the flag comes first and the help last
package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/denied"
)

// Messages: publishMessage publishes what an agent or a user has written, and prints a receipt, or with --wait what follows from it.

// messageSettings are the settings that only message has.
type messageSettings struct {
	App      string `flag:"app" default:"default" help:"Tenant of the message."`
	Workflow string `flag:"workflow" example:"Interview" help:"Workflow of the chat; required."`
	Agent    string `flag:"agent" example:"Architect" help:"Agent that has written the text. Without it, --user has."`
	User     string `flag:"user" example:"ada" help:"User that has written the text, or that the text of --agent is for."`
	ID       string `flag:"id" example:"m1" help:"Id of the message: publishing it again is harmless. Defaults to a random one, which the receipt has."`
	Run      string `flag:"run" example:"r1" help:"Run of the chat, if its messages name one."`
	Turn     string `flag:"turn" example:"t1" help:"Key of the turn that the message may make. Defaults to the id of the message."`
	Finish   string `flag:"finish-reason" example:"stop" help:"Why the model has stopped, as its API reports it: without it a text that was cut off can look complete."`
	Sequence int    `flag:"sequence" default:"0" min:"0" max:"1000000000" help:"Position in the chat; 0: not known."`
}

func messageCommand(env cli.Lookup) *cobra.Command {
	var cfg config.Publisher
	var what messageSettings
	return cli.Command(&cobra.Command{
		Use:   "message CHAT [TEXT|-]",
		Short: "Publish what an agent or a user has written",
		Long: "message publishes a text of an agent or a user. Workers find the JSON in it, match the triggers of the workflow and decide\n" +
			"who speaks next; if the agent has an automatic tool, the JSON is the data of a turn. Without TEXT, or with -, it is read from\n" +
			"standard input.\n\n" +
			"A receipt is printed. With --wait one JSON line is printed instead, once all that follows is stored, with\n" +
			"message_id, chat_id, agent, status, success, content, ui_hidden, turn, code, error, payload, updates, handoff.\n\n" +
			"Exit codes, without --wait: 0 the message was published, 1 it was not. With --wait: 0 all that follows is stored and the turn\n" +
			"or output, if there is one, succeeded; 1 it failed, or not all was stored within --timeout. Both: 2 wrong usage or configuration.",
		Example: "  publisher message chat-42 'A shop, please.' --workflow Interview --user ada\n" +
			"  publisher message chat-42 --workflow Interview --agent Architect --finish-reason stop --wait < output.txt",
	}, env, func(cmd *cobra.Command, args []string) error {
		m, err := what.message(args, cmd.InOrStdin())
		if err != nil {
			return err
		}
		return publishMessage(cmd, &cfg, m)
	}, &cfg, &what)
}

// message takes the message from the arguments and flags.
func (s *messageSettings) message(args []string, stdin io.Reader) (*oneturn.Message, error) {
	const chatAndText = 2
	switch {
	case len(args) == 0 || len(args) > chatAndText || args[0] == "":
		return nil, cli.Usagef("message: a chat is required, and a text in one argument, or on standard input: publisher message CHAT [TEXT|-] --workflow WORKFLOW, with --agent AGENT or --user USER")
	case s.Workflow == "":
		return nil, cli.Usagef("message: a workflow is required: --workflow WORKFLOW")
	case s.Agent == "" && s.User == "":
		return nil, cli.Usagef("message: the author of the text is required: --agent AGENT, or --user USER for a text of a user")
	case s.Agent == "" && s.Turn+s.Finish != "":
		return nil, cli.Usagef("message: --turn and --finish-reason are for the texts of agents: name one with --agent AGENT, or omit them")
	}
	text := "-"
	if len(args) == chatAndText {
		text = args[1]
	}
	if text == "-" {
		read, err := io.ReadAll(io.LimitReader(stdin, maxEvent+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("read input: %w", err)
		case len(read) > maxEvent:
			return nil, fmt.Errorf("message: the text is longer than %d MiB: store it elsewhere and send a reference", maxEvent>>20)
		}
		text = strings.TrimSuffix(string(read), "\n")
	}
	m := &oneturn.Message{
		MessageID: oneturn.MessageID{App: s.App, Chat: args[0], Run: s.Run, Message: s.ID}, Workflow: s.Workflow, Agent: s.Agent,
		Content: text, FinishReason: s.Finish, Turn: s.Turn, UserID: s.User, TurnSequence: int64(s.Sequence),
	}
	if m.Message == "" {
		m.Message = rand.Text()
	}
	return m, nil
}

func publishMessage(cmd *cobra.Command, cfg *config.Publisher, m *oneturn.Message) error {
	stderr := cli.Locked(cmd.ErrOrStderr())
	nc, client, err := open(cfg, false, "message", stderr)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, stop := limit(cmd.Context(), cfg, nc)
	defer stop()
	user := oneturn.UserMessage{MessageID: m.MessageID, Workflow: m.Workflow, UserID: m.UserID, Content: m.Content, TurnSequence: m.TurnSequence}
	if !cfg.Wait {
		var receipt oneturn.Receipt
		if m.Agent == "" {
			receipt, err = client.PublishUserMessage(ctx, &user)
		} else {
			receipt, err = client.PublishMessage(ctx, m)
		}
		if err != nil {
			return denied.Because(ctx, err)
		}
		return printMessage(cmd.OutOrStdout(), cfg.Format, m, receipt)
	}
	o := messageOutcome{Message: m.Message, ChatID: m.Chat, RunID: m.Run, AppID: m.App, Agent: cmp.Or(m.Agent, events.AgentUser)}
	var follows *oneturn.MessageOutcome
	if m.Agent == "" {
		follows, err = client.DoUserMessage(ctx, &user)
	} else {
		follows, err = client.DoMessage(ctx, m)
	}
	switch {
	case errors.Is(err, oneturn.ErrMessageConflict):
		o.Status, o.Error = statusConflict, oneturn.ErrMessageConflict.Error()
	case errors.Is(err, oneturn.ErrConflict):
		o.Status, o.Error = statusConflict, "the key of its turn was used before with other data, so the text is stored and the turn does not run: set another --turn or --id"
	case err != nil && ctx.Err() == nil:
		return denied.Because(ctx, err)
	case err != nil:
		o.Status, o.Error = statusPending, denied.Because(ctx, err).Error()
	default:
		o.note(follows)
	}
	if err != nil {
		fmt.Fprintf(stderr, "message: %s\n", o.Error)
	}
	if h := o.Handoff; h != nil && h.Code != "" {
		fmt.Fprintf(stderr, "message: the next speaker is undecided (%s): %s\n", h.Code, h.Why)
	}
	if err := cli.WriteJSON(cmd.OutOrStdout(), o, ""); err != nil {
		return err
	}
	if !o.Success {
		return cli.ErrReported
	}
	return nil
}

// printMessage prints the receipt of a message.
func printMessage(out io.Writer, format string, m *oneturn.Message, r oneturn.Receipt) error {
	if format == "json" {
		return cli.WriteJSON(out, messageReceipt{m.Message, m.Chat, m.Run, m.App, r.Sequence, r.Duplicate}, "")
	}
	known := ""
	if r.Duplicate {
		known = ", dropped: the same message was stored before"
	}
	if _, err := fmt.Fprintf(out, "message %s of chat %s is #%d%s\n", cli.ShellWord(m.Message), cli.ShellWord(m.Chat), r.Sequence, known); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// messageReceipt is the JSON of one published message of an agent or a user.
type messageReceipt struct {
	Message   string `json:"message_id"`
	ChatID    string `json:"chat_id"`
	RunID     string `json:"run_id,omitempty"`
	AppID     string `json:"app_id"`
	Sequence  uint64 `json:"sequence"`            // in the inbound stream
	Duplicate bool   `json:"duplicate,omitempty"` // the server had it already and dropped it
}

// messageOutcome is the JSON of one message with --wait.
type messageOutcome struct {
	Message string         `json:"message_id"`
	ChatID  string         `json:"chat_id"`
	RunID   string         `json:"run_id,omitempty"`
	AppID   string         `json:"app_id"`
	Agent   string         `json:"agent"`
	Status  string         `json:"status"` // ok, error; pending if the wait ended first; conflict if the id, or the key of its turn, was used before for something else
	Success bool           `json:"success"`
	Content any            `json:"content"` // as it is displayed
	Hidden  bool           `json:"ui_hidden"`
	Turn    string         `json:"turn,omitempty"`
	Code    events.Code    `json:"code,omitempty"`
	Error   string         `json:"error,omitempty"`
	Payload any            `json:"payload"` // of the response, or the output
	Updates map[string]any `json:"updates,omitempty"`
	Handoff *speaker       `json:"handoff,omitempty"`
}

// speaker is the next speaker in JSON.
type speaker struct {
	To     *string `json:"to"`
	Reason string  `json:"reason"`
	Code   string  `json:"code,omitempty"`
	Why    string  `json:"message,omitempty"` // why it is undecided, and what to do
}

// note takes what follows from a message.
func (o *messageOutcome) note(f *oneturn.MessageOutcome) {
	o.Status, o.Success = events.StatusOK, true
	o.Content, o.Hidden, o.Turn = f.Text.Content, f.Text.UIHidden, f.Text.Turn
	if r := f.Response; r != nil {
		o.Turn, o.Success, o.Code, o.Payload = r.Turn, r.Success, r.Code, r.Payload // of the last correction
		if !r.Success {
			o.Error = r.Content
		}
	}
	if out := f.Output; out != nil {
		o.Success, o.Code, o.Payload, o.Error = out.Success, out.Code, out.Payload, out.Content
	}
	if o.Code != "" {
		o.Status = events.StatusError
	}
	for _, u := range f.Updates {
		if o.Updates == nil {
			o.Updates = map[string]any{}
		}
		o.Updates[u.Variable] = u.Value
	}
	if h := f.Handoff; h != nil {
		o.Handoff = &speaker{h.To, h.Reason, h.Code, h.Message}
	}
}
