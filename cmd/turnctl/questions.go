package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxCallID bounds how much of a tool_call_id is printed: ids are copied, so no valid one is cut.
const maxCallID = 1200

func (a *app) questions() *cobra.Command {
	c := &cobra.Command{
		Use:   "questions",
		Short: "List, show and end the questions that tools ask people",
		Long: `Questions lists, shows and ends the questions of tools that are not answered yet. A turn that waits
for an answer uses no worker resources. These commands read the journal directly from the server;
expire and cancel need a worker. To answer one: publisher answer CHAT TOOL_CALL_ID JSON.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Usagef("%s: ls, show, expire or cancel: see %s --help", c.Name(), c.CommandPath())
		},
	}
	c.AddCommand(a.questionsLs(), a.questionsShow(), a.questionsExpire(), a.questionsCancel())
	return c
}

// waits is the former name of questions. It stays for one release.
func (a *app) waits() *cobra.Command {
	c := a.questions()
	c.Use, c.Hidden = "waits", true
	c.PersistentPreRun = func(*cobra.Command, []string) {
		fmt.Fprintln(a.stderr, "turnctl: waits is deprecated and will be removed: use turnctl questions")
	}
	return c
}

// place limits where a question is searched for.
type place struct{ app, chat string }

func (p *place) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.app, "app", "", "only this tenant")
	c.Flags().StringVar(&p.chat, "chat", "", "only this chat")
}

func (p *place) tokens() (app, chat string) {
	app, chat = idempotency.AnyToken, idempotency.AnyToken
	if p.app != "" {
		app = subjects.Token(p.app)
	}
	if p.chat != "" {
		chat = subjects.Token(p.chat)
	}
	return app, chat
}

// hint explains what is not found without a chat.
func (p *place) hint() string {
	if p.chat == "" {
		return " (expired questions are found with --chat only)"
	}
	return ""
}

// oneQuestion requires the id of one question.
func oneQuestion(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cli.Usagef("questions %s: one TOOL_CALL_ID is required: copy it from turnctl questions ls", command)
		}
		return nil
	}
}
