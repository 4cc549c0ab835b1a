package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxCallID bounds how much of a tool_call_id is printed: ids are copied, so no valid one is cut.
const maxCallID = 1200

// maxKey bounds how much of a journal key is printed: no valid one is cut.
const maxKey = 4 * maxCallID

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
	c.Use, c.Hidden = formerQuestions, true
	c.Short = "The former name of turnctl questions"
	c.Long = "Waits is the former name of turnctl questions and will be removed in the next release: use turnctl questions.\n\n" + c.Long
	return c
}

// formerQuestions is the former name of the command questions.
const formerQuestions = "waits"

// noteFormerName prints the notice of a deprecated command, also for a command line with errors.
func (a *app) noteFormerName(root *cobra.Command, args []string) {
	for c, _, _ := root.Find(args); c != nil; c = c.Parent() { // an error is reported by the execution
		if c.Name() == formerQuestions {
			fmt.Fprintln(a.stderr, "turnctl: waits is deprecated and will be removed in the next release: use turnctl questions")
		}
	}
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
		return " (expired questions are found with CHAT or --chat only)"
	}
	return ""
}

// question takes the chat and the id of one question from the arguments: an optional CHAT, and TOOL_CALL_ID.
func (p *place) question(command string, args []string) (toolCallID string, err error) {
	given := make([]string, len(args))
	for i, arg := range args {
		given[i] = argument(arg)
	}
	const most = 2
	switch {
	case len(args) == 0:
		return "", cli.Usagef("questions %s: TOOL_CALL_ID is missing: copy it from turnctl questions ls", command)
	case len(args) > most:
		return "", cli.Usagef("questions %s: CHAT and TOOL_CALL_ID are accepted, and not %s: copy them from turnctl questions ls", command, strings.Join(given, " "))
	case len(args) == 1:
		return args[0], nil
	case args[0] == "":
		return "", cli.Usagef("questions %s: CHAT is empty: omit it, or copy it from turnctl questions ls", command)
	case p.chat != "" && p.chat != args[0]:
		return "", cli.Usagef("questions %s: chat %s and --chat %s contradict each other: omit one", command, given[0], argument(p.chat))
	}
	p.chat = args[0]
	return args[1], nil
}
