package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/query"
)

// The text of a turn report: the state as a sentence (meaning), the facts, the steps of a program (show_steps.go), the records
// in order, and then the call, the questions and the response. All ids and values come from outside and are cleaned before they are printed.

// meaning explains the state in a sentence.
func (l *turnReport) meaning() string {
	var text string
	switch l.State {
	case query.Ended:
		text = "the response is stored and final"
		if l.Response == nil {
			text = "the response is stored but unreadable: readers get state_corrupt"
		}
	case query.Parked:
		text = l.parkedMeaning()
	case query.Unclaimed:
		text = "no worker has claimed it yet"
	case query.Running:
		text = l.runningMeaning()
	}
	if l.Damaged {
		text += "; a record is damaged, see below"
	}
	return text
}

func (l *turnReport) parkedMeaning() string {
	switch n := l.Questions.open(); {
	case l.Woken:
		return "no worker runs it, and the answer is stored: the message of the answer resumes it"
	case n > 1:
		return fmt.Sprintf("it waits for the answers to %d questions, and no worker runs it", n)
	default:
		return "it waits for an answer, and no worker runs it"
	}
}

func (l *turnReport) runningMeaning() string {
	if n := l.Questions.open(); n > 0 && l.LeaseMessage != leaseGone {
		return fmt.Sprintf("worker %s runs it, and it waits for the answer to %s", id(l.Owner), plural.Of(n, "question"))
	}
	owner := "a worker"
	if l.Owner != "" {
		owner = "worker " + l.Owner
	}
	switch l.LeaseMessage {
	case leaseThere:
		return owner + " has claimed it and not finished; if that worker died, its message is redelivered to another one after the ack wait"
	case leaseGone:
		return owner + " has claimed it and not finished, and its message is not in the stream any more: the next sweep ends it, or turnctl repair when the claim is two ack waits old"
	default:
		return owner + " has claimed it and not finished"
	}
}

// text prints the report for people.
func (l *turnReport) text(w io.Writer) {
	if step := findStep(l.Steps, l.Step); step != nil {
		l.stepText(w, step)
		return
	}
	fmt.Fprintf(w, "turn %s of chat %s, app %s", id(l.Turn), id(l.Chat), id(l.App))
	if l.Run != "" {
		fmt.Fprintf(w, ", run %s", id(l.Run))
	}
	fmt.Fprintf(w, "\n%s\n\n", wrap(string(l.State)+": "+clean(l.Meaning, 500), 0))
	table(w, 2, l.facts(), 1)
	fmt.Fprintln(w)
	l.stepsText(w, l.Steps)
	recordsText(w, l.Records)
	l.callText(w)
	l.questionsText(w)
	l.responseText(w)
	if l.Message != nil {
		fmt.Fprintf(w, "\nmessage %s: %s\n\n", id(l.Message.ID), clean(l.Message.Meaning, 500))
		table(w, 2, l.Message.facts(), 1)
		l.Message.details(w)
	}
}

// facts lists the facts about the turn as a whole.
func (l *turnReport) facts() [][]string {
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, clean(value, 120)})
		}
	}
	add("retry of", l.RetryOf)
	add("retried as", l.RetriedAs)
	add("correction of", l.CorrectionOf)
	add("workflow", l.Workflow)
	add("agent", l.Agent)
	add("tool", l.Tool)
	add("effect", l.Effect)
	add("verdict", l.Verdict)
	add("cancelled", l.CancelReason)
	if l.Owner != "" {
		add("owner", l.Owner+", epoch "+strconv.Itoa(l.Epoch))
	}
	lease := l.Lease
	if l.LeaseMessage != "" && lease != "" {
		lease += ", message " + l.LeaseMessage
	}
	add("lease", lease)
	add("call id", l.ToolCallID)
	add("binding", l.Binding)
	add("trace", l.Trace)
	add("key", l.Key)
	for _, key := range l.Reuses {
		add("used again", "turnctl show --key "+key)
	}
	return rows
}

// recordsText prints records in their order.
func recordsText(w io.Writer, records []recordFact) {
	rows := make([][]string, 1, 1+len(records))
	rows[0] = []string{"seq", "time", "after", "record", "owner", "epoch", "details"}
	for _, r := range records {
		kind := clean(r.Kind, 40)
		if r.ID != "" {
			kind += "." + id(r.ID)
		}
		if r.Step != "" {
			kind = "#" + id(r.Step) + " " + kind
		}
		rows = append(rows, []string{
			strconv.FormatUint(r.Seq, 10), stamp(r.Time), fmt.Sprintf("+%.1f ms", r.AfterMS), kind, id(r.Owner),
			strconv.Itoa(r.Epoch), r.details(),
		})
	}
	table(w, 2, rows, 0, 1, 2, 3)
	for _, r := range records {
		if r.Error != "" {
			fmt.Fprintln(w, wrap(fmt.Sprintf("damaged: record %d: %s", r.Seq, clean(r.Error, 500)), 2))
		}
	}
}

// details lists what only some records have.
func (r *recordFact) details() string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, clean(text, 80))
		}
	}
	add(r.Verdict)
	add(r.Lease)
	if r.Private {
		add("private")
	} else {
		add(plural.Of(r.Bytes, "byte"))
	}
	if r.Error != "" {
		add("damaged")
	}
	return strings.Join(parts, ", ")
}

func (l *turnReport) callText(w io.Writer) {
	of, call, _ := l.shown()
	if call == nil {
		return
	}
	fmt.Fprintf(w, "\ncall%s: arguments of %s%s\n", of, plural.Of(call.ArgsBytes, "byte"), inBlob(call.ArgsBlob))
	valueText(w, call.Args)
	l.fetchText(w, call.Args, call.ArgsBlob)
}

// fetchText names the command that fetches a value which is shown as a reference.
func (l *turnReport) fetchText(w io.Writer, shown json.RawMessage, blob string) {
	if len(shown) > 0 && blob != "" {
		fmt.Fprintln(w, wrap("fetch it: nats object get "+argument(l.blobs)+" "+argument(blob), 2))
	}
}

func (l *turnReport) questionsText(w io.Writer) {
	if len(l.Questions) == 0 {
		return
	}
	fmt.Fprintln(w, "\nquestions:")
	rows := [][]string{{"tool_call_id", "asked", "tool", "user", "state"}}
	for i := range l.Questions {
		q := &l.Questions[i]
		rows = append(rows, []string{
			clean(q.ToolCallID, maxCallID), second(q.AskedAt), cell(q.Tool), cell(q.User), q.stateText(),
		})
	}
	table(w, 2, rows, 0, 1, 2)
}

func (l *turnReport) responseText(w io.Writer) {
	of, _, r := l.shown()
	if r == nil {
		return
	}
	fmt.Fprintf(w, "\nresponse%s: %s", of, clean(r.Status, 40))
	if r.Code != "" {
		fmt.Fprintf(w, " %s", clean(string(r.Code), 40))
	}
	if r.Status == "ok" && !r.Success {
		fmt.Fprint(w, " without success")
	}
	since := "claim"
	if of != "" {
		since = "call"
	}
	fmt.Fprintf(w, ", %s, tool %d ms, %s to end %.1f ms, payload of %s%s\n",
		plural.Of(r.Attempts, "attempt"), r.DurationMS, since, r.TotalMS, plural.Of(r.PayloadBytes, "byte"), inBlob(r.PayloadBlob))
	if r.Content != "" {
		contentText(w, r.Content)
	}
	if len(r.ContextKeys) > 0 {
		fmt.Fprintln(w, wrap("context variables changed: "+clean(strings.Join(r.ContextKeys, ", "), 400), 2))
	}
	valueText(w, r.Payload)
	l.fetchText(w, r.Payload, r.PayloadBlob)
}

// place returns the flags that lead to other turns of the same app and run.
func (l *turnReport) place() string { return placeFlags(l.App, l.Run) }

func placeFlags(app, run string) string {
	flags := ""
	if app != events.DefaultApp {
		flags += " --app " + argument(app)
	}
	if run != "" {
		flags += " --run " + argument(run)
	}
	return flags
}

// contentText prints a text in its lines, indented and safe for a terminal; of a long one the beginning.
func contentText(w io.Writer, text string) {
	const longest, lines = 4000, 60
	shown := []rune(text)
	if len(shown) > longest {
		shown = append(shown[:longest], '…')
	}
	n := 0
	for line := range strings.SplitSeq(strings.TrimRight(string(shown), "\n"), "\n") {
		if n++; n > lines {
			fmt.Fprintln(w, "  …")
			return
		}
		line = strings.TrimSuffix(line, "\r")
		indent := min(len(line)-len(strings.TrimLeft(line, " ")), 20)
		fmt.Fprintln(w, wrap(clean(line, longest), 2+indent))
	}
}

func inBlob(name string) string {
	if name == "" {
		return ""
	}
	return " in blob " + clean(name, 200)
}

// valueText prints a JSON value, indented and safe for a terminal.
func valueText(w io.Writer, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, value, "  ", "  "); err != nil {
		return
	}
	for line := range strings.SplitSeq(indented.String(), "\n") {
		fmt.Fprintln(w, clean("  "+strings.TrimPrefix(line, "  "), len(line)+2))
	}
}
