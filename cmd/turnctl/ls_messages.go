package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// messageList is the output of turnctl ls --messages.
type messageList struct {
	Messages []listedMessage `json:"messages"` // the newest last
	Since    time.Time       `json:"since"`    // nothing older was read
	More     bool            `json:"more"`     // there are older ones since then
}

// listedMessage is one message of a list.
type listedMessage struct {
	Seq      uint64    `json:"seq"` // of the text
	Time     time.Time `json:"time"`
	App      string    `json:"app_id"`
	Chat     string    `json:"chat_id"`
	Run      string    `json:"run_id,omitempty"`
	ID       string    `json:"message_id"`
	Agent    string    `json:"agent"`
	User     string    `json:"user_id,omitempty"`
	Workflow string    `json:"workflow,omitempty"`
	Text     string    `json:"text"` // the beginning of the content
	Hidden   bool      `json:"ui_hidden"`
	Turn     string    `json:"turn,omitempty"` // key of the turn that it makes
	To       string    `json:"to,omitempty"`   // the next speaker; "" if that is not decided (yet)
	Reason   string    `json:"reason,omitempty"`
	Key      string    `json:"key"` // for turnctl show --key
	Error    string    `json:"error,omitempty"`
}

// listMessages returns the newest messages.
func (s *server) listMessages(ctx context.Context, want listSettings, now time.Time) (*messageList, error) {
	state, err := s.journalState(ctx)
	if err != nil {
		return nil, err
	}
	l := &messageList{Messages: []listedMessage{}, Since: now.Add(-want.since).UTC()}
	found, more, err := s.newestClaims(ctx, want, state, l.Since)
	if err != nil {
		return nil, err
	}
	l.More = more
	for _, m := range found {
		text, err := s.journal.At(ctx, m.seq)
		if errors.Is(err, idempotency.ErrNotFound) {
			continue // it has just expired
		}
		if err != nil {
			return nil, err
		}
		handoff, err := s.journal.LastOf(ctx, []string{m.Public(events.RecordHandoff)})
		if err != nil {
			return nil, err
		}
		l.Messages = append(l.Messages, newListedMessage(&text, handoff[0]))
	}
	return l, nil
}

// newListedMessage reads a text, and the handoff that follows it, which may be nil.
func newListedMessage(text, handoff *idempotency.Record) listedMessage {
	records := []idempotency.Record{*text}
	if handoff != nil {
		records = append(records, *handoff)
	}
	name, _ := subjects.ParseKey(text.Key)
	key := name.Key
	r := newMessageReport(key, records, false)
	m := listedMessage{
		Seq: text.Seq, Time: text.Time.UTC(), App: r.App, Chat: r.Chat, Run: r.Run, ID: r.ID, Agent: r.Agent, User: r.User, Workflow: r.Workflow,
		Text: cellOf(r.Content), Hidden: r.Hidden, Turn: r.turn, Key: r.Key,
	}
	if r.ContentBlob != "" {
		m.Text = "(in a blob)"
	}
	if h := r.Handoff; h != nil {
		if m.Reason = h.Reason; h.To != nil {
			m.To = *h.To
		}
	}
	for i := range r.Records {
		if m.Error == "" {
			m.Error = r.Records[i].Error
		}
	}
	return m
}

func (l *messageList) text(w io.Writer, want listSettings) {
	if len(l.Messages) == 0 && !l.More {
		fmt.Fprintf(w, "no message in the last %s%s: a longer --since reads further back\n", agoText(want.since), want.where())
		return
	}
	rows := [][]string{{"time", "chat", "message", "agent", "turn", "next", "text"}}
	for i := range l.Messages {
		m := &l.Messages[i]
		rows = append(rows, []string{second(m.Time), chatText(want.app, m.App, m.Chat), m.idText(), cell(m.Agent), id(m.Turn), m.nextText(), m.contentCell()})
	}
	table(w, 0, rows, 0, 1, 2, 4)
	for i := range l.Messages {
		if m := &l.Messages[i]; m.Error != "" {
			fmt.Fprintf(w, "%s: damaged: %s\n", clean(m.Key, maxKey), clean(m.Error, 300))
		}
	}
	if l.More {
		fmt.Fprintln(w, "there are older ones: a larger --limit shows them")
	}
}

func (m *listedMessage) idText() string {
	if m.Run != "" {
		return id(m.ID) + " run " + id(m.Run)
	}
	return id(m.ID)
}

// nextText is the next speaker, or why that is not decided.
func (m *listedMessage) nextText() string {
	if m.To == "" {
		return cell(m.Reason)
	}
	return cell(m.To)
}

// contentCell is the text in a table; it states that people do not see it.
func (m *listedMessage) contentCell() string {
	if m.Hidden {
		return "(hidden) " + m.Text
	}
	return m.Text
}
