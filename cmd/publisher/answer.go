//nolint:tagalign // as in package config: the flag comes first and the help last
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deliver"
	"github.com/oneturn/oneturn/internal/denied"
	"github.com/oneturn/oneturn/internal/nearest"
	"github.com/oneturn/oneturn/internal/plural"
)

// Answering: answerQuestion reads the answer, finds the question with the help of a worker (answer) or, if none
// runs, in the journal (answerStored), publishes, and prints the result. With --wait it then waits for the end of
// the turn. The answer may be secret: it is in no error and no log.

// answerSettings is the user and the tenant of an answer.
type answerSettings struct {
	App      string `flag:"app" default:"default" help:"Tenant of the question."`
	User     string `flag:"user" example:"ada" help:"User that answers. Defaults to the user of the question."`
	Workflow string `flag:"workflow" example:"Orders" help:"Workflow of the question. With it the question is not looked up: the answer is published even if no worker runs, and needs --user if the question is for one user."`
}

func answerCommand(env cli.Lookup) *cobra.Command {
	var cfg config.Publisher
	var who answerSettings
	return cli.Command(&cobra.Command{
		Use:   "answer CHAT TOOL_CALL_ID [JSON]",
		Short: "Answer a question of a tool",
		Long: "answer publishes a person's answer to an open question and prints the result. The answer is a JSON value;\n" +
			"without one it is read from standard input, which keeps secrets out of the shell's history. Sending the same\n" +
			"answer again is harmless.\n\n" +
			"The result has an HTTP status: 200 accepted (or accepted before: replayed), 403 the question is for another\n" +
			"user, 404 not found, 409 already answered, 410 expired, cancelled or closed, 422 invalid answer, 429 too many\n" +
			"searches now.\n" +
			"202: the answer is published, and no worker has decided it yet: the next one that runs does. If no worker\n" +
			"runs, the question is read from the journal, which needs the permission to read it.\n\n" +
			"With --wait the end of the turn is printed too, as by publish, after the answer is accepted; further questions\n" +
			"of the turn are reported meanwhile.\n\n" +
			"Exit codes, without --wait: 0 the status is 200 or 202; 1 the status is another one, or the answer was not published.\n" +
			"With --wait: 0 the status is 200 or 202 and the turn has ended, also with a failure (its outcome is printed); 1 the status is\n" +
			"another one, or the turn had not ended within --timeout. Both: 2 wrong usage or configuration.",
		Example: "  publisher answer chat-42 turn-7/1 '{\"status\":\"approved\"}'\n  publisher answer chat-42 turn-7/key --user ada < key.json",
		Args:    oneAnswer,
	}, env, func(cmd *cobra.Command, args []string) error {
		return answerQuestion(cmd, &cfg, who, args)
	}, &cfg, &who)
}

// oneAnswer requires a question, and at most one answer.
func oneAnswer(_ *cobra.Command, args []string) error {
	const least, most = 2, 3
	if len(args) < least || len(args) > most { // the arguments may be secret: they are not printed
		return cli.Usagef("answer: a question is required: publisher answer CHAT TOOL_CALL_ID [JSON], and not %s, for example "+
			"publisher answer chat-42 turn-7/1 '{\"status\":\"approved\"}' (turnctl questions ls lists open questions)", plural.Of(len(args), "argument"))
	}
	if _, _, ok := events.ParseQuestionID(args[1]); !ok { // perhaps the answer, which may be secret: it is not printed
		return cli.Usagef("answer: invalid TOOL_CALL_ID: use for example turn-7/1: publisher answer CHAT TOOL_CALL_ID [JSON]")
	}
	return nil
}

func answerQuestion(cmd *cobra.Command, cfg *config.Publisher, who answerSettings, args []string) error {
	q := oneturn.Answer{QuestionID: oneturn.QuestionID{App: who.App, Chat: args[0], ToolCallID: args[1]}, UserID: who.User, Workflow: who.Workflow}
	var err error
	if q.Value, err = answerValue(args[2:], cmd.InOrStdin()); err != nil {
		return err
	}
	stderr := cli.Locked(cmd.ErrOrStderr())
	nc, client, err := open(cfg, true, "turn", stderr)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, stop := limit(cmd.Context(), cfg, nc)
	defer stop()
	v, turn, err := answer(ctx, client, stderr, &q, cfg.Wait)
	if noWorkerAnswered(ctx, err) {
		fmt.Fprintln(stderr, noWorker(cfg, nc, oneturn.TurnID{App: q.App}))
		v, turn, err = answerStored(ctx, nc, client, stderr, cfg, &q)
	}
	switch {
	case errors.Is(err, oneturn.ErrUndecided):
		v = &events.AnswerResult{Status: api.StatusPublished, Code: api.CodePublished, Message: err.Error(), ToolCallID: q.ToolCallID}
	case err != nil:
		return denied.Because(ctx, err)
	}
	if err := printResult(cmd.OutOrStdout(), cfg.Format, v); err != nil {
		return err
	}
	if fix := resultFix(v); fix != "" {
		fmt.Fprintln(stderr, fix)
	}
	switch published := v.Status == api.StatusPublished; {
	case !v.OK() && !published:
		return cli.ErrReported
	case !cfg.Wait:
		return nil
	}
	response, err := client.Await(ctx, turn)
	err = denied.Because(ctx, err)
	p := &printer{out: cmd.OutOrStdout(), err: stderr, json: cfg.Format == "json", outcomes: true}
	if failed := p.ended("answer", turn, response, false, err); failed != nil {
		return failed
	}
	if err != nil {
		return cli.ErrReported
	}
	return nil
}

// noWorkerAnswered reports whether a request of the request API failed because no worker runs, or because the
// worker with the request died.
func noWorkerAnswered(ctx context.Context, err error) bool {
	return errors.Is(err, oneturn.ErrNoWorker) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// resultFix is the fix for a refused answer, "" if its message includes it.
func resultFix(v *events.AnswerResult) string {
	switch v.Code {
	case events.AnswerForbidden:
		return "set --user to the user of the question: turnctl questions show " + cli.ShellWord(v.ToolCallID) + " prints it"
	case events.AnswerUnknown:
		return "the question may be in another chat or tenant (--app): turnctl questions ls lists the open ones"
	default:
		return ""
	}
}

// answer finds the question, unless its workflow is set, and answers it. It returns the turn, if it was
// searched for: always with wait.
func answer(ctx context.Context, client *oneturn.Client, stderr io.Writer, q *oneturn.Answer, wait bool) (v *events.AnswerResult, turn oneturn.TurnID, err error) {
	early := false
	if q.Workflow == "" || wait {
		w, err := client.Question(ctx, q.QuestionID)
		if errors.Is(err, oneturn.ErrNoQuestion) {
			v := deliver.Unknown(q.ToolCallID)
			return &v, turn, nil
		}
		if err != nil {
			return nil, turn, err
		}
		if w.State == api.NotAsked {
			warnNotAsked(stderr, openQuestions(ctx, client, w), q.ToolCallID)
			early = true
		}
		turn = direct(q, w)
	}
	v, err = client.Answer(ctx, q)
	if early && errors.Is(err, oneturn.ErrUndecided) {
		v = &events.AnswerResult{
			Status: api.StatusPublished, Code: api.CodePublished, ToolCallID: q.ToolCallID,
			Message: "The turn has not asked this question yet: the answer is held for up to two minutes after it was published, then it is rejected.",
		}
		return v, turn, nil
	}
	return v, turn, err
}

// openQuestions lists the open questions of a turn that are on the first page of its chat.
func openQuestions(ctx context.Context, client *oneturn.Client, w *api.Question) (open []string) {
	found, err := client.Questions(ctx, oneturn.QuestionFilter{App: w.App, Chat: w.Chat})
	if err != nil { // the answer is sent without the hint
		return nil
	}
	for i := range found.Questions {
		if q := &found.Questions[i]; q.Turn == w.Turn && q.Run == w.Run && q.State == api.Open {
			open = append(open, q.ToolCallID)
		}
	}
	return open
}

// answerStored answers a question that is read from the journal, because no worker runs. A worker that starts
// meanwhile decides the answer.
func answerStored(ctx context.Context, nc *nats.Conn, client *oneturn.Client, stderr io.Writer, cfg *config.Publisher, q *oneturn.Answer) (v *events.AnswerResult, turn oneturn.TurnID, err error) {
	asked, err := storedQuestion(ctx, nc, cfg.Prefix, q)
	switch {
	case err != nil:
		return v, turn, fmt.Errorf("no worker answers and the journal is unreadable: %w: start a worker, or set --workflow to publish without one", err)
	case asked == nil:
		v := deliver.Unknown(q.ToolCallID)
		return &v, turn, nil
	case asked.State == api.NotAsked:
		warnNotAsked(stderr, nil, q.ToolCallID)
	default:
		if v, fits := checkAnswer(q, asked.Schema); !fits {
			return &v, turn, nil
		}
	}
	turn = direct(q, asked)
	v, err = client.Answer(ctx, q)
	return v, turn, err
}

// direct directs an answer to its question, and returns the turn of that.
func direct(q *oneturn.Answer, asked *api.Question) oneturn.TurnID {
	q.Workflow, q.Subject, q.Run = asked.Workflow, asked.Subject, asked.Run
	q.UserID = cmp.Or(q.UserID, asked.User)
	return oneturn.TurnID{App: asked.App, Chat: asked.Chat, Run: asked.Run, Turn: asked.Turn}
}

// warnNotAsked reports that an answer precedes its question, and lists the open questions of the turn, because
// the id may be misspelt.
func warnNotAsked(stderr io.Writer, open []string, id string) {
	fmt.Fprintln(stderr, "the turn has not asked this question yet: the answer is held for up to two minutes")
	if len(open) == 0 {
		return
	}
	names := make([]string, len(open))
	for i := range open {
		names[i] = cli.ShellWord(open[i])
	}
	text := "open questions of the turn: " + strings.Join(names, ", ")
	if meant := nearest.Of(id, open, nearest.Rule{Edits: func(a, b string) int { return max(len(a), len(b)) / 3 }}); meant != "" { //nolint:mnd // a third of the characters
		text += "; did you mean " + cli.ShellWord(meant) + "?"
	}
	fmt.Fprintln(stderr, text)
}

// answerValue is the answer of a command line, or of standard input.
func answerValue(args []string, stdin io.Reader) (any, error) {
	text, where, err := []byte(strings.Join(args, "")), "the command line", error(nil)
	if len(args) == 0 {
		where = "standard input"
		text, err = io.ReadAll(io.LimitReader(stdin, events.MaxAnswerBytes+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(text) > events.MaxAnswerBytes:
		return nil, cli.Usagef("answer: %s has over %d bytes: store the data elsewhere and answer with a reference", where, events.MaxAnswerBytes)
	}
	value, err := events.Decode(text)
	if err != nil { // the text is not printed, because it may be secret
		return nil, cli.Usagef(`answer: %s is not valid JSON (%w): quote a text, for example '"yes"'`, where, err)
	}
	return value, nil
}

func printResult(w io.Writer, format string, v *events.AnswerResult) error {
	if format == "json" {
		return cli.WriteJSON(w, v, "")
	}
	_, err := fmt.Fprintf(w, "%d %s: %s\n", v.Status, v.Code, v.Message)
	violations, _ := v.Errors.([]any)
	for _, violation := range violations {
		line, errLine := events.AppendJSON(nil, violation)
		if errLine == nil && err == nil {
			_, err = fmt.Fprintf(w, "  %s\n", line)
		}
	}
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// questionText reports that a turn waits for an answer, with the command to send one.
func questionText(w *api.Question) string {
	what := cli.ShellWord(w.Tool)
	if w.Component != "" && w.Component != w.Tool {
		what += " (" + cli.ShellWord(w.Component) + ")"
	}
	if w.User != "" {
		what += " from " + cli.ShellWord(w.User)
	}
	if !w.ExpiresAt.IsZero() {
		what += " until " + w.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z")
	}
	command := "publisher answer " + cli.ShellWord(w.Chat) + " " + cli.ShellWord(w.ToolCallID)
	if w.App != events.DefaultApp {
		command += " --app " + cli.ShellWord(w.App)
	}
	if w.Secret {
		return "waiting for an answer: " + what + ", a secret: " + command + " < FILE"
	}
	return "waiting for an answer: " + what + ": " + command + " JSON"
}
