//nolint:tagalign // as in package config: the flag comes first and the help last
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/denied"
	"github.com/oneturn/oneturn/internal/nearest"
)

// sender says who answers, and for which tenant.
type sender struct {
	App      string `flag:"app" default:"default" help:"Tenant of the question."`
	User     string `flag:"user" example:"ada" help:"Who answers. Defaults to the user that the question is for."`
	Workflow string `flag:"workflow" example:"Orders" help:"Workflow of the question. With it no worker is asked what the question is: the answer is published though none runs, and needs --user if the question is for one."`
}

func answerCommand(env cli.Lookup) *cobra.Command {
	var cfg config.Publisher
	var who sender
	return cli.Command(&cobra.Command{
		Use:   "answer CHAT TOOL_CALL_ID [JSON]",
		Short: "Answer a question that a tool has asked",
		Long: "answer sends a person's answer to an open question and prints what becomes of it. The answer is any JSON value;\n" +
			"without one it is read from standard input, which keeps secrets out of the shell's history. To send the same\n" +
			"answer again is harmless.\n\n" +
			"The verdict has a status of HTTP: 200 accepted (or accepted before: replayed), 403 the question is somebody\n" +
			"else's, 404 there is none, 409 already answered, 410 expired, cancelled or closed, 422 the answer does not fit,\n" +
			"429 it cannot be looked for now.\n" +
			"202: the answer is published, and no worker has decided on it yet: the first one that runs does. Without\n" +
			"a worker the question is looked up in the journal itself, which needs the right to read it.\n\n" +
			"With --wait the end of the turn is printed, too, as for publish, once an answer is accepted; what the turn\n" +
			"asks next is told meanwhile.\n\n" +
			"Exit codes: 0 the status is 200 or 202; 1 it is another one, or the answer was not published; 2 wrong usage.",
		Example: "  publisher answer chat-42 turn-7/1 '{\"status\":\"approved\"}'\n  publisher answer chat-42 turn-7/key --user ada < key.json",
		Args:    oneAnswer,
	}, env, func(cmd *cobra.Command, args []string) error {
		return answerQuestion(cmd, &cfg, who, args)
	}, &cfg, &who)
}

// oneAnswer wants a question, and one answer at most.
func oneAnswer(_ *cobra.Command, args []string) error {
	const least, most = 2, 3
	if len(args) < least || len(args) > most {
		return cli.Usagef("answer: name the question: publisher answer CHAT TOOL_CALL_ID [JSON], for example " +
			"publisher answer chat-42 turn-7/1 '{\"status\":\"approved\"}' (turnctl questions ls lists open questions)")
	}
	if _, _, ok := events.ParseQuestionID(args[1]); !ok { // perhaps the answer: it is not repeated
		return cli.Usagef("answer: the second argument is no id of a question, such as turn-7/1: publisher answer CHAT TOOL_CALL_ID [JSON]")
	}
	return nil
}

func answerQuestion(cmd *cobra.Command, cfg *config.Publisher, who sender, args []string) error {
	q := oneturn.Answer{App: who.App, Chat: args[0], ToolCallID: args[1], UserID: who.User, Workflow: who.Workflow}
	var err error
	if q.Value, err = answerValue(args[2:], cmd.InOrStdin()); err != nil {
		return err
	}
	stderr := &shared{w: cmd.ErrOrStderr()}
	nc, client, err := open(cfg, true, stderr)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, stop := limit(cmd.Context(), cfg, nc)
	defer stop()
	v, turn, err := answer(ctx, client, stderr, q, cfg.Wait)
	if noneAnswers(ctx, err) {
		fmt.Fprintln(stderr, noWorker(cfg, nc, oneturn.TurnID{App: q.App}))
		v, turn, err = answerStored(ctx, nc, client, stderr, cfg, q)
	}
	switch {
	case errors.Is(err, oneturn.ErrUndecided):
		v = events.AnswerResult{Status: api.StatusPublished, Code: api.CodePublished, Message: err.Error(), ToolCallID: q.ToolCallID}
	case err != nil:
		return denied.Because(ctx, err)
	}
	if err := printVerdict(cmd.OutOrStdout(), cfg.Format, &v); err != nil {
		return err
	}
	if fix := verdictFix(&v); fix != "" {
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
	p := &printer{out: cmd.OutOrStdout(), err: stderr, json: cfg.Format == "json", waits: true}
	if failed := p.ended("answer", turn, response, false, err); failed != nil {
		return failed
	}
	if err != nil {
		return cli.ErrReported
	}
	return nil
}

// noneAnswers reports whether a request of the request API ended for want of a worker: none was there, or
// the one that had the request has died.
func noneAnswers(ctx context.Context, err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// verdictFix is what helps against a verdict, "" if its message says so.
func verdictFix(v *events.AnswerResult) string {
	switch v.Code {
	case events.AnswerForbidden:
		return "name the user that the question is for with --user: turnctl questions show " + quoted(v.ToolCallID) + " prints it"
	case events.AnswerUnknown:
		return "the question may be of another chat or tenant (--app): turnctl questions ls lists the open ones"
	default:
		return ""
	}
}

// answer finds the question, unless its workflow is named, and answers it. It returns its turn, if
// it has found it, as it does for one that will be waited for.
func answer(ctx context.Context, client *oneturn.Client, stderr io.Writer, q oneturn.Answer, wait bool) (v events.AnswerResult, turn oneturn.TurnID, err error) {
	early := false
	if q.Workflow == "" || wait {
		w, known, err := client.Question(ctx, q.App, q.Chat, q.ToolCallID)
		if err != nil {
			return v, turn, err
		}
		if !known {
			return unknown(q.ToolCallID), turn, nil
		}
		if w.State == api.NotAsked {
			notAsked(stderr, openQuestions(ctx, client, &w), q.ToolCallID)
			early = true
		}
		q.Workflow, q.Subject, q.Run = w.Workflow, w.Subject, w.Run
		if q.UserID == "" {
			q.UserID = w.User
		}
		turn = oneturn.TurnID{App: w.App, Chat: w.Chat, Run: w.Run, Turn: w.Turn}
	}
	v, err = client.Answer(ctx, q)
	if early && errors.Is(err, oneturn.ErrUndecided) {
		v = events.AnswerResult{
			Status: api.StatusPublished, Code: api.CodePublished, ToolCallID: q.ToolCallID,
			Message: "The turn has still not asked this question: the answer waits for it, up to two minutes from its publish, and is rejected then.",
		}
		return v, turn, nil
	}
	return v, turn, err
}

// openQuestions lists the open questions of a turn, as far as the first page of its chat has them.
func openQuestions(ctx context.Context, client *oneturn.Client, w *api.Question) (open []string) {
	found, err := client.Questions(ctx, w.App, api.QuestionsRequest{Chat: w.Chat})
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

// answerStored answers a question that only the journal can tell of, as no worker is there. A
// worker that starts meanwhile gives the verdict.
func answerStored(ctx context.Context, nc *nats.Conn, client *oneturn.Client, stderr io.Writer, cfg *config.Publisher, q oneturn.Answer) (v events.AnswerResult, turn oneturn.TurnID, err error) {
	e, err := storedQuestion(ctx, nc, cfg.Prefix, &q)
	switch {
	case err != nil:
		return v, turn, fmt.Errorf("no worker was there to ask, and not the journal either: %w: start a worker, or name the --workflow to publish without one", err)
	case e == nil || e.Answer == nil:
		return unknown(q.ToolCallID), turn, nil
	case e.ToolCallID != q.ToolCallID:
		notAsked(stderr, nil, q.ToolCallID)
	default:
		if v, fits := checkAnswer(&q, e.Answer.Schema); !fits {
			return v, turn, nil
		}
	}
	q.Workflow, q.Subject, q.Run = e.WorkflowName, e.Answer.Subject, e.RunID
	if q.UserID == "" {
		q.UserID = e.UserID
	}
	v, err = client.Answer(ctx, q)
	return v, oneturn.TurnID{App: e.AppID, Chat: e.ChatID, Run: e.RunID, Turn: e.Turn}, err
}

// unknown is the verdict on an answer whose question and turn are unknown.
func unknown(id string) events.AnswerResult {
	return events.NewAnswerResult(events.AnswerUnknown, id, "There is no such question in this chat, and no running turn that could ask it.")
}

// notAsked reports that an answer comes before its question, and which questions of the turn are open:
// the id may be misspelt.
func notAsked(stderr io.Writer, open []string, id string) {
	fmt.Fprintln(stderr, "the turn has not asked this question yet: the answer waits for it, up to two minutes")
	if len(open) == 0 {
		return
	}
	names := make([]string, len(open))
	for i := range open {
		names[i] = quoted(open[i])
	}
	text := "open questions of the turn: " + strings.Join(names, ", ")
	if meant := nearest.Of(id, open, nearest.Rule{Edits: func(a, b string) int { return max(len(a), len(b)) / 3 }}); meant != "" { //nolint:mnd // a third of the letters
		text += "; did you mean " + quoted(meant) + "?"
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
	if err != nil { // what was typed is not repeated: it may be secret
		return nil, cli.Usagef(`answer: %s is no JSON (%w); a text is JSON in double quotes, for example '"yes"'`, where, err)
	}
	return value, nil
}

func printVerdict(w io.Writer, format string, v *events.AnswerResult) error {
	var err error
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		err = e.Encode(v)
	} else {
		_, err = fmt.Fprintf(w, "%d %s: %s\n", v.Status, v.Code, v.Message)
		if faults, ok := v.Errors.([]any); ok && err == nil {
			for _, fault := range faults {
				line, errLine := events.AppendJSON(nil, fault)
				if errLine == nil {
					_, err = fmt.Fprintf(w, "  %s\n", line)
				}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// questionText says that a turn waits for a person, with the command that answers.
func questionText(w *api.Question) string {
	what := quoted(w.Tool)
	if w.Component != "" && w.Component != w.Tool {
		what += " (" + quoted(w.Component) + ")"
	}
	if w.User != "" {
		what += " from " + quoted(w.User)
	}
	if !w.ExpiresAt.IsZero() {
		what += " until " + w.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z")
	}
	command := "publisher answer " + quoted(w.Chat) + " " + quoted(w.ToolCallID)
	if w.App != events.DefaultApp {
		command += " --app " + quoted(w.App)
	}
	if w.Secret {
		return "waiting for an answer: " + what + ", a secret: " + command + " < FILE"
	}
	return "waiting for an answer: " + what + ": " + command + " JSON"
}

// quoted prints an id as a shell takes it, safe for a terminal.
func quoted(id string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./@:+,=%", r))
	}
	if id != "" && strings.IndexFunc(id, func(r rune) bool { return !plain(r) }) < 0 {
		return id
	}
	safe := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, id)
	return "'" + strings.ReplaceAll(safe, "'", `'\''`) + "'"
}
