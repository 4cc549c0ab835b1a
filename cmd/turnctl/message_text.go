package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/query"
)

// The text of a report of a message. All ids and values come from outside and are cleaned before they are printed.

// text prints the report for people.
func (l *messageReport) text(w io.Writer) {
	fmt.Fprintf(w, "message %s of chat %s, app %s", id(l.ID), id(l.Chat), id(l.App))
	if l.Run != "" {
		fmt.Fprintf(w, ", run %s", id(l.Run))
	}
	fmt.Fprintf(w, "\n%s\n\n", wrap(string(l.State)+": "+clean(l.Meaning, 500), 0))
	table(w, 2, append(l.facts(), []string{"key", clean(l.Key, 120)}), 1)
	fmt.Fprintln(w)
	recordsText(w, l.Records)
	l.details(w)
	if len(l.Turns) > 0 {
		fmt.Fprintln(w, "\n"+wrap(fmt.Sprintf("turnctl show %s %s%s shows its turn", argument(l.Chat), argument(l.Turns[0].Turn), placeFlags(l.App, l.Run)), 0))
	}
}

// details prints the contents and what follows from them.
func (l *messageReport) details(w io.Writer) {
	l.contentText(w)
	l.triggersText(w)
	l.turnsText(w)
	l.callsText(w)
	l.handoffText(w)
}

// facts lists the facts about the message as a whole.
func (l *messageReport) facts() [][]string {
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, clean(value, 200)})
		}
	}
	add("agent", l.Agent)
	add("user", l.User)
	add("workflow", l.Workflow)
	add("people", l.visibility())
	if l.Sequence > 0 {
		add("turn_sequence", strconv.FormatInt(l.Sequence, 10))
	}
	if l.OutOfOrder {
		add("out of order", "a later message of the run was handled before, so it changed nothing")
	}
	if o := l.Output; o != nil {
		add("object", o.text(l.Model))
		add("repaired", strings.Join(o.Repairs, ", "))
		add("around it", strings.Join(o.Around, ", "))
	}
	add("warnings", strings.Join(l.Warnings, ", "))
	return rows
}

func (l *messageReport) visibility() string {
	switch {
	case l.Hidden:
		return "hidden from people"
	case !l.Visual:
		return "not displayed: the manifests do not let frontends display this agent"
	}
	return "displayed"
}

func (o *objectFacts) text(model string) string {
	text := plural.Of(o.Bytes, "byte") + inBlob(o.Blob)
	if model != "" {
		text = "of model " + id(model) + ", " + text
	}
	return text
}

func (l *messageReport) contentText(w io.Writer) {
	fmt.Fprintf(w, "\ncontent: %s%s\n", plural.Of(l.ContentBytes, "byte"), inBlob(l.ContentBlob))
	switch content := l.Content.(type) {
	case string:
		contentText(w, content)
	case json.RawMessage:
		valueText(w, content)
	}
	if l.ContentBlob != "" {
		fmt.Fprintln(w, wrap("fetch it: nats object get "+argument(l.blobs)+" "+argument(l.ContentBlob), 2))
	}
	if l.Output != nil && len(l.Output.Value) > 0 {
		fmt.Fprintln(w, "\nobject:")
		valueText(w, l.Output.Value)
	}
	if l.Unread != "" {
		fmt.Fprintln(w, "\noutput that cannot be used:")
		contentText(w, l.Unread)
	}
}

func (l *messageReport) triggersText(w io.Writer) {
	if len(l.Triggers) == 0 {
		return
	}
	fmt.Fprintln(w, "\ncontext variables:")
	rows := [][]string{{"variable", "set to", "change"}}
	for _, t := range l.Triggers {
		change := "none: it has the value already"
		switch {
		case t.Seq > 0:
			change = "record " + strconv.FormatUint(t.Seq, 10)
		case l.Refused != "":
			change = "none: left out, " + clean(l.Refused, 300)
		case l.OutOfOrder:
			change = "none: the message is out of order"
		case len(t.From) > 0:
			change = "none: it has the value already, or not " + short(t.From)
		case l.State == messageOpen:
			change = "none yet"
		}
		rows = append(rows, []string{cell(t.Variable), short(t.Value), change})
	}
	table(w, 2, rows, 0)
}

func (l *messageReport) turnsText(w io.Writer) {
	if len(l.Turns) == 0 {
		return
	}
	fmt.Fprintln(w, "\nturns:")
	rows := [][]string{{"turn", "corrects", "tool", "state", "took"}}
	var notes []string
	for i := range l.Turns {
		t := &l.Turns[i]
		took, state := "-", string(t.State)
		if t.TotalMS != nil {
			took = fmt.Sprintf("%.1f ms", *t.TotalMS)
		}
		if t.State == query.Ended {
			state = cell(t.Outcome)
		}
		rows = append(rows, []string{clean(t.Turn, maxCallID), id(t.Corrects), cell(t.Tool), state, took})
		if t.OtherCause {
			notes = append(notes, "turn "+id(t.Turn)+" was published as well, and runs by that")
		}
	}
	table(w, 2, rows, 0, 1, 3)
	for _, note := range notes {
		fmt.Fprintln(w, wrap(note, 2))
	}
}

func (l *messageReport) callsText(w io.Writer) {
	if len(l.Calls) == 0 {
		return
	}
	fmt.Fprintln(w, "\nmodels:")
	rows := [][]string{{"call", "for", "tool", "outcome", "reply"}}
	for i := range l.Calls {
		c := &l.Calls[i]
		purpose := "correction " + clean(strings.TrimPrefix(c.Call, "c"), 8)
		if c.Rule != nil {
			purpose = "condition of rule " + strconv.Itoa(*c.Rule)
		}
		outcome := c.Outcome
		if outcome == "" {
			outcome = "no response yet"
		}
		rows = append(rows, []string{cell(c.Call), purpose, cell(c.Tool), cell(outcome), cell(short(c.Reply))})
	}
	table(w, 2, rows, 0, 1)
}

func (l *messageReport) handoffText(w io.Writer) {
	h := l.Handoff
	if h == nil {
		return
	}
	fmt.Fprintln(w, "\n"+wrap("handoff: "+l.handoffLine(), 0))
	if h.Message != "" {
		fmt.Fprintln(w, wrap(clean(h.Message, longestText), 2))
	}
	fmt.Fprintln(w, wrap(fmt.Sprintf("turnctl handoff explain %s %s%s explains it", argument(l.Chat), argument(l.ID), placeFlags(l.App, l.Run)), 2))
}

// handoffLine is the handoff in a line.
func (l *messageReport) handoffLine() string {
	h := l.Handoff
	parts := make([]string, 1, 1+len(h.Via))
	parts[0] = id(l.Agent) + " → " + h.next() + ", " + h.why()
	for _, v := range h.Via {
		parts = append(parts, fmt.Sprintf("%s was chosen first, pre rule %d", id(v.Agent), v.Rule))
	}
	return strings.Join(parts, "; ")
}

// next is the next speaker.
func (h *handoffFact) next() string {
	if h.To == nil {
		return "not decided"
	}
	return id(*h.To)
}

// why is the reason of a handoff.
func (h *handoffFact) why() string {
	text := clean(h.Reason, 40)
	if h.Code != "" {
		text += " (" + clean(h.Code, 40) + ")"
	}
	if h.Rule != nil {
		text += ", rule " + strconv.Itoa(*h.Rule)
	}
	return text
}

// cellOf is a text on one line of a table; of a message with another content a description.
func cellOf(content any) string {
	const widest = 80
	switch v := content.(type) {
	case string:
		return clean(strings.Join(strings.Fields(v), " "), widest)
	case map[string]any:
		if _, ok := events.BlobOf(v); ok {
			return "(in a blob)"
		}
	}
	return clean(string(jsonValue(content)), widest)
}
