// messages.go holds the scenario of messages: an agent's text sets a variable and another agent is next, whose worker is
// killed in the tool that its text calls.

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
)

// killInterview kills the worker of a message in the tool of its turn.
func killInterview(ctx context.Context, d *demo) error {
	w, err := d.workers.start(ctx)
	if err != nil {
		return err
	}
	d.detailf("a fresh worker: process %d", w.pid())
	token := message("m9", "Interviewer", "NEXT")
	first, err := d.client.DoMessage(ctx, token)
	if err != nil {
		return err
	}
	d.checkf(first.Text.UIHidden && len(first.Updates) == 1, "%q is hidden and has set %s", token.Content, updated(first))
	d.checkf(speaker(first) == "Architect", "the next speaker is %s", speaker(first))

	output := message("t9", "Architect", "Here it is:\n{title: 'Lamps',}")
	begin := time.Now()
	if _, err := d.client.PublishMessage(ctx, output); err != nil {
		return err
	}
	inside, err := d.ledger.wait(ctx, output.Message)
	if err != nil {
		return err
	}
	d.detailf("draw runs in process %d after %d ms: kill -9 %d", inside.Worker, time.Since(begin).Milliseconds(), inside.Worker)
	if err := d.workers.kill(inside.Worker); err != nil {
		return err
	}
	last, err := d.client.AwaitMessage(ctx, output.MessageID)
	if err != nil {
		return err
	}
	runs, err := d.ledger.of(output.Message)
	if err != nil {
		return err
	}
	d.detailf("response after %d ms: %q; repaired in the text: %v", time.Since(begin).Milliseconds(), last.Response.Content, last.Text.Repairs)
	d.checkf(last.Response.Success && len(runs) == 2, "draw, idempotent, ran again, by %s", workersOf(runs))
	d.checkf(speaker(last) == "terminate", "the next speaker is %s: the chat ends", speaker(last))
	for _, kind := range []string{events.KindText, events.KindHandoff} {
		n := d.talk.wait(ctx, 4)[kind+" "+output.Message]
		d.checkf(n == 1, "subscribers saw chat.%s of the message %s", kind, times(n))
	}
	return nil
}

// message returns a message of an agent of the demo.
func message(id, agent, content string) *oneturn.Message {
	t := turn(id, agent, "", nil)
	return &oneturn.Message{
		MessageID: oneturn.MessageID{App: t.App, Chat: t.Chat, Message: id}, Workflow: "Interview", Agent: agent, Content: content, FinishReason: "stop",
	}
}

// speaker returns the next speaker after a message, "" if it has none.
func speaker(o *oneturn.MessageOutcome) string {
	if o.Handoff == nil || o.Handoff.To == nil {
		return ""
	}
	return *o.Handoff.To
}

// updated returns the variables that a message has set.
func updated(o *oneturn.MessageOutcome) string {
	list := make([]string, 0, len(o.Updates))
	for _, u := range o.Updates {
		list = append(list, fmt.Sprintf("%s = %v", u.Variable, u.Value))
	}
	return strings.Join(list, ", ")
}

// talkOf returns the kind and message of an event of a message.
func talkOf(data map[string]any) string {
	kind, _ := data["kind"].(string)
	id, _ := data["message_id"].(string)
	return kind + " " + id
}
