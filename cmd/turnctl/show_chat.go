package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// A chat is shown by the names of the claims of its turns and of the texts of its messages: the server keeps these in an index, so
// the role operator may list them.

// Bounds of a report of a chat.
const (
	mostOfChat   = 2000 // turns and messages whose records are read to find the newest
	newestOfChat = 50
)

// chatReport is the output of turnctl show CHAT.
type chatReport struct {
	App     string      `json:"app_id"`
	Chat    string      `json:"chat_id"`
	Entries []chatEntry `json:"entries"` // the newest 50, the newest last
	More    bool        `json:"more"`    // there are older ones

	Revision  uint64         `json:"revision"`            // of the stored context variables, 0 if the chat has none
	Speaker   string         `json:"speaker,omitempty"`   // the agent that spoke last
	Variables []variableFact `json:"variables,omitempty"` // that were set
	Removed   []string       `json:"removed,omitempty"`   // variables that a tool has removed
	Unread    string         `json:"variables_error,omitempty"`
}

// chatEntry is a message or a turn.
type chatEntry struct {
	Message *listedMessage `json:"message,omitempty"`
	Turn    *listed        `json:"turn,omitempty"`
}

// variableFact is a context variable that was set.
type variableFact struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	Seq   uint64          `json:"seq"` // of the record that set it last, 0 for one whose value a tool has read
}

// chatReport reads the newest turns and messages of a chat, and its context variables.
func (s *server) chatReport(ctx context.Context, app, chat string) (*chatReport, error) {
	if _, err := s.journalState(ctx); err != nil {
		return nil, err
	}
	l := &chatReport{App: app, Chat: chat, Entries: []chatEntry{}}
	claims, err := s.claimsOf(ctx, app, chat)
	if err != nil {
		return nil, err
	}
	if l.More = len(claims) > newestOfChat; l.More {
		claims = claims[len(claims)-newestOfChat:]
	}
	for _, r := range claims {
		entry, err := s.entryOf(ctx, r)
		if err != nil {
			return nil, err
		}
		if entry.Message != nil || entry.Turn != nil {
			l.Entries = append(l.Entries, entry)
		}
	}
	state, err := s.contextState(ctx, app, chat, variables.Layers{})
	if err != nil {
		l.Unread = err.Error()
	} else {
		l.addState(state)
	}
	if len(l.Entries) == 0 && l.Revision == 0 {
		return nil, fmt.Errorf("no turn, message or context variable of chat %.200q, app %.200q: check that the chat and --app are spelled as in the event: turnctl ls lists turns, turnctl ls --messages messages", chat, app)
	}
	return l, nil
}

// claimsOf returns the claims of the turns and the texts of the messages of a chat, in their order.
func (s *server) claimsOf(ctx context.Context, app, chat string) ([]*idempotency.Record, error) {
	var names []string
	all := subjects.Key{App: subjects.Token(app), Chat: subjects.Token(chat), Turn: idempotency.AnyToken, Call: subjects.SingleCall}
	for _, kind := range []string{events.RecordCall, events.RecordText} {
		found, err := s.journal.Names(ctx, all.Public(kind))
		if err == nil && len(names)+len(found) > mostOfChat {
			err = idempotency.ErrTooMany
		}
		switch {
		case errors.Is(err, idempotency.ErrTooMany):
			return nil, fmt.Errorf("chat %.200q has over %d turns and messages: list the newest with turnctl ls --chat and turnctl ls --messages --chat", chat, mostOfChat)
		case err != nil:
			return nil, unprovisioned(err)
		}
		for _, name := range found {
			names = append(names, name.Name())
		}
	}
	records, err := s.journal.LastOf(ctx, names)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r *idempotency.Record) bool { return r == nil })
	slices.SortFunc(records, func(a, b *idempotency.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return records, nil
}

// entryOf reads what belongs to a claim or a text.
func (s *server) entryOf(ctx context.Context, r *idempotency.Record) (chatEntry, error) {
	var entry chatEntry
	name, ok := subjects.ParseKey(r.Key)
	if !ok {
		return entry, nil
	}
	if name.Kind == events.RecordText {
		handoff, err := s.journal.LastOf(ctx, []string{name.Public(events.RecordHandoff)})
		if err != nil {
			return entry, err
		}
		m := newListedMessage(r, handoff[0])
		entry.Message = &m
		return entry, nil
	}
	var err error
	entry.Turn, err = s.fetch(ctx, kept{whole(name.Key), r.Seq})
	return entry, err
}

// contextState reads the context variables of a chat, over what is known of the values below the stored ones.
func (s *server) contextState(ctx context.Context, app, chat string, below variables.Layers) (*variables.State, error) {
	docs, err := store.OpenDocuments(ctx, s.js, s.space)
	if err != nil {
		return nil, fmt.Errorf("read the context variables: %w", unprovisioned(err))
	}
	v := variables.NewIn(docs)
	v.Journal = idempotency.New(s.journal, "turnctl", idempotency.Options{})
	return v.StateOver(ctx, subjects.Token(app), chat, below)
}

func (l *chatReport) addState(state *variables.State) {
	l.Revision, l.Speaker, l.Removed = state.Revision, state.Speaker, state.Removed
	for _, name := range slices.Sorted(maps.Keys(state.Written)) {
		l.Variables = append(l.Variables, variableFact{Name: name, Value: jsonValue(state.Values[name]), Seq: state.Written[name]})
	}
}

func (l *chatReport) text(w io.Writer) {
	fmt.Fprintf(w, "chat %s, app %s\n\n", id(l.Chat), id(l.App))
	if l.More {
		fmt.Fprintf(w, "the newest %d turns and messages:\n", newestOfChat)
	}
	rows := make([][]string, 1, 1+len(l.Entries))
	rows[0] = []string{"time", "what", "id", "of", "state", "next", "text"}
	for _, e := range l.Entries {
		rows = append(rows, e.row())
	}
	if len(l.Entries) > 0 {
		table(w, 0, rows, 0, 1, 2)
	}
	switch {
	case l.Unread != "":
		fmt.Fprintln(w, "\n"+wrap("context variables: "+clean(l.Unread, longestText), 0))
	case len(l.Variables) > 0:
		fmt.Fprintln(w, "\ncontext variables that were set:")
		rows := make([][]string, 1, 1+len(l.Variables))
		rows[0] = []string{"variable", "record", "value"}
		for _, v := range l.Variables {
			rows = append(rows, []string{cell(v.Name), strconv.FormatUint(v.Seq, 10), clean(string(v.Value), 200)})
		}
		table(w, 2, rows, 0)
	}
	if len(l.Removed) > 0 {
		fmt.Fprintln(w, wrap("removed: "+clean(strings.Join(l.Removed, ", "), 400), 2))
	}
	if l.Speaker != "" {
		fmt.Fprintf(w, "\n%s spoke last\n", id(l.Speaker))
	}
}

// row is the entry in a table.
func (e *chatEntry) row() []string {
	if m := e.Message; m != nil {
		return []string{second(m.Time), "message", m.idText(), cell(m.Agent), "-", m.nextText(), m.contentCell()}
	}
	t := e.Turn
	of := strings.Trim(cell(t.Workflow)+"/"+cell(t.Tool), "/")
	return []string{second(t.Time), "turn", t.turnText(), of, t.stateText(), "-", t.took()}
}
