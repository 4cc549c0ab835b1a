//nolint:tagalign // as in package config: the flag comes first and the help last
package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/denied"
)

// cancelSettings names the turn to cancel.
type cancelSettings struct {
	App      string `flag:"app" default:"default" help:"Tenant of the turn."`
	Chat     string `flag:"chat" example:"c1" help:"Chat of the turn, in place of the first argument."`
	Turn     string `flag:"turn" example:"t1" help:"Key of the turn, in place of the second argument."`
	ID       string `flag:"tool-call-id" example:"t1#2" help:"Id of an event of the turn, in place of its key: of a step of a program, of a question."`
	Run      string `flag:"run" example:"r1" help:"Run of the turn, if its event named one."`
	Workflow string `flag:"workflow" example:"Hello" help:"Workflow of the turn; shown in its events."`
	Reason   string `flag:"reason" example:"the user left" help:"The reason, shown to people: in the response of the turn and in turnctl show."`
}

func cancelCommand(env cli.Lookup) *cobra.Command {
	var cfg config.Publisher
	var what cancelSettings
	return cli.Command(&cobra.Command{
		Use:   "cancel CHAT TURN | CHAT --tool-call-id ID",
		Short: "Request the cancellation of a turn",
		Long: "cancel requests the end of a turn. A turn that no worker has claimed ends without its tool, also if\n" +
			"it is published after the request; a running turn is stopped, and its effect may have happened; an\n" +
			"ended turn does not change. With --wait the end of the turn is printed as by publish.\n\n" +
			"A step of a program cannot be cancelled alone: --tool-call-id with its id, or the id of one of its questions,\n" +
			"cancels its turn. Such a request finds turns that are claimed, and is held for one for up to two minutes.\n\n" +
			"Exit codes, without --wait: 0 the request was published, 1 it was not. With --wait: 0 the turn has ended, with any outcome;\n" +
			"1 the request was not published, or the turn had not ended within --timeout. Both: 2 wrong usage or configuration.",
		Example: "  publisher cancel hello hello-2 --reason 'the user left'",
	}, env, func(cmd *cobra.Command, args []string) error {
		if err := what.name(args); err != nil {
			return err
		}
		return cancelTurn(cmd, &cfg, what)
	}, &cfg, &what)
}

// name takes the turn from the arguments, or else from the flags.
func (t *cancelSettings) name(args []string) error {
	switch {
	case len(args) == 0 && t.Chat != "" && (t.Turn == "") != (t.ID == ""):
	case len(args) == 1 && args[0] != "" && t.Chat == "" && t.Turn == "" && t.ID != "":
		t.Chat = args[0]
	case len(args) == 2 && args[0] != "" && args[1] != "" && t.Chat == "" && t.Turn == "" && t.ID == "": //nolint:mnd // CHAT TURN
		t.Chat, t.Turn = args[0], args[1]
	default:
		var given []string
		for _, arg := range args {
			given = append(given, cli.ShellWord(arg))
		}
		for _, flag := range [][2]string{{"--chat", t.Chat}, {"--turn", t.Turn}, {"--tool-call-id", t.ID}} {
			if flag[1] != "" {
				given = append(given, flag[0]+" "+cli.ShellWord(flag[1]))
			}
		}
		const usage = "cancel: one turn is required: publisher cancel CHAT TURN, or --chat CHAT and one of --turn TURN and --tool-call-id ID"
		if len(given) == 0 {
			return cli.Usagef("%s", usage)
		}
		return cli.Usagef("%s (given: %.200s)", usage, strings.Join(given, " "))
	}
	return nil
}

// stepHint is the hint for a turn key that looks like the id of a step or of a question of a step, "" for others.
func stepHint(turn string) string {
	ids := []string{turn}
	if call, _, ok := events.ParseQuestionID(turn); ok {
		ids = append(ids, call)
	}
	for _, of := range ids {
		for range events.StepIDs(of) {
			return fmt.Sprintf("%s is taken for the key of a turn: to cancel the turn of a step, use --tool-call-id %s", cli.ShellWord(turn), cli.ShellWord(turn))
		}
	}
	return ""
}

func cancelTurn(cmd *cobra.Command, cfg *config.Publisher, what cancelSettings) error {
	stderr := cli.Locked(cmd.ErrOrStderr())
	nc, client, err := open(cfg, true, "turn", stderr)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, stop := limit(cmd.Context(), cfg, nc)
	defer stop()
	id := oneturn.TurnID{App: what.App, Chat: what.Chat, Run: what.Run, Turn: what.Turn}
	if what.ID != "" {
		id.Turn = what.ID // for what is printed
		if cfg.Wait {
			if id, err = turnOfCall(ctx, nc, cfg.Prefix, id); err != nil {
				return denied.Because(ctx, err)
			}
		}
	} else if text := stepHint(what.Turn); text != "" {
		fmt.Fprintln(stderr, text)
	}
	ended := false
	if cfg.Wait { // without --wait the permission to read is not needed
		var text string
		if text, ended = cancelWarning(ctx, nc, cfg.Prefix, id); text != "" {
			fmt.Fprintln(stderr, text)
		}
	}
	receipt, err := client.Cancel(ctx, &oneturn.Cancel{TurnID: id, Workflow: what.Workflow, Reason: what.Reason, ToolCallID: what.ID})
	if err != nil {
		return denied.Because(ctx, err)
	}
	p := &printer{out: cmd.OutOrStdout(), err: stderr, json: cfg.Format == "json", outcomes: cfg.Wait, cancels: true}
	if err := p.published("cancel", id, receipt); err != nil || !cfg.Wait {
		return err
	}
	if !ended {
		p.waits(id, cfg.Timeout)
	}
	response, err := client.Await(ctx, id)
	if err != nil {
		return denied.Because(ctx, err)
	}
	return p.ended("cancel", id, response, false, nil)
}
