package gatewaychaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"github.com/oneturn/oneturn/events"
)

// Record is a public record of the journal, with what follows from it for clients.
type Record struct {
	Sequence uint64
	Chat     string
	Kind     string
	Visible  bool
	Sum      uint64 // of the event as clients get it, see [Sum]
	Items    []Item // that a client of AG-UI gets of it

	event event
}

// event has the fields of an event that the checks and the test itself need.
type event struct {
	Kind            string          `json:"kind"`
	App             string          `json:"app_id"`
	Chat            string          `json:"chat_id"`
	User            string          `json:"user_id"`
	MessageID       string          `json:"message_id"`
	Content         json.RawMessage `json:"content"`
	Hidden          bool            `json:"ui_hidden"`
	Visual          *bool           `json:"is_visual"`
	ToolCallID      string          `json:"tool_call_id"`
	Turn            string          `json:"turn"`
	Program         string          `json:"program"`
	Step            string          `json:"step"`
	InteractionType string          `json:"interaction_type"`
	Awaiting        bool            `json:"awaiting_response"`
	Payload         json.RawMessage `json:"payload"`
	Code            string          `json:"code"`
}

// Journal has the public records of all chats. It is safe for concurrent use.
type Journal struct {
	mu    sync.Mutex
	last  uint64
	chats map[string]*chat
	owner map[uint64]string // chats by sequence
}

// chat has the records of a chat, and what is open in it.
type chat struct {
	records []Record
	shown   map[string]bool // calls and messages
	results map[string]bool // calls that have a result
	asking  []question
	stored  map[string]uint64 // sequences of messages of users
	ended   map[string]bool   // turns and calls that have a response, by tool_call_id
}

// question is a question that is open.
type question struct{ id, call, turn string }

// NewJournal returns a journal without records.
func NewJournal() *Journal { return &Journal{chats: map[string]*chat{}, owner: map[uint64]string{}} }

// Message is what a user has written.
type Message struct{ App, Chat, User, ID, Text string }

// Message returns what a user has written; ok is false for other records.
func (r *Record) Message() (m Message, ok bool) {
	e := &r.event
	return Message{App: e.App, Chat: e.Chat, User: e.User, ID: e.MessageID, Text: contentOf(e.Content)}, r.Kind == events.KindUserMessage
}

// Add adds the event of a public record, and returns the record. Records have to be added in the order of their sequences.
func (j *Journal) Add(sequence uint64, stored []byte) (*Record, error) {
	var envelope struct {
		Type string `json:"type"`
		Data event  `json:"data"`
	}
	if err := json.Unmarshal(stored, &envelope); err != nil {
		return nil, fmt.Errorf("record %d: %w", sequence, err)
	}
	e := envelope.Data
	if e.Kind == "" {
		e.Kind = strings.TrimPrefix(envelope.Type, events.TypePrefix)
	}
	sum, err := Sum(stored)
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", sequence, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if sequence <= j.last {
		return nil, fmt.Errorf("record %d comes after %d", sequence, j.last)
	}
	j.last = sequence
	c := j.chats[e.Chat]
	if c == nil {
		c = &chat{shown: map[string]bool{}, results: map[string]bool{}, stored: map[string]uint64{}, ended: map[string]bool{}}
		j.chats[e.Chat] = c
	}
	j.owner[sequence] = e.Chat
	r := Record{Sequence: sequence, Chat: e.Chat, Kind: e.Kind, Visible: e.visible(), Sum: sum, Items: c.items(sequence, &e), event: e}
	c.records = append(c.records, r)
	return &r, nil
}

// visible reports whether people may see the event.
func (e *event) visible() bool {
	background := e.Visual != nil && !*e.Visual && e.Kind != events.KindUserMessage
	return !e.Hidden && !background
}

// Last returns the sequence of the last record.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Records returns the records of a chat.
func (j *Journal) Records(chat string) []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c := j.chats[chat]; c != nil {
		return slices.Clone(c.records)
	}
	return nil
}

// History returns what the records of a chat are, one in a line, for a violation: what was stored last shows what is missing.
func (j *Journal) History(chat string) string {
	var b strings.Builder
	for _, r := range j.Records(chat) {
		e := &r.event
		fmt.Fprintf(&b, "\n  %d %s turn %q message %q call %q", r.Sequence, r.Kind, e.Turn, e.MessageID, e.ToolCallID)
		if e.Awaiting {
			b.WriteString(" asks")
		}
		if e.Code != "" {
			fmt.Fprintf(&b, " %s", e.Code)
		}
	}
	return b.String()
}

// ChatOf returns the chat of a record, "" if there is no such record.
func (j *Journal) ChatOf(sequence uint64) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.owner[sequence]
}

// Stored returns the sequence of a user's message, 0 if it is not stored.
func (j *Journal) Stored(chat, message string) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c := j.chats[chat]; c != nil {
		return c.stored[message]
	}
	return 0
}

// Ended reports whether a call has a response, or an agent has sent a text with this id.
func (j *Journal) Ended(chat, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.chats[chat]
	return c != nil && (c.ended[id] || c.shown[itemText+" "+id])
}

// Open returns the ids of the questions of a chat that are open.
func (j *Journal) Open(chat string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.chats[chat]
	if c == nil {
		return nil
	}
	ids := make([]string, 0, len(c.asking))
	for _, q := range c.asking {
		ids = append(ids, q.id)
	}
	return ids
}

// Decided reports whether a question was decided: its answer was accepted, or it was closed.
func (j *Journal) Decided(chat, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.chats[chat]
	return c != nil && c.results[id]
}

// Sum identifies the content of an event as stored, or of a frame: without its sequence and its mark as replay, and without the
// subject for answers, which gateways remove.
func Sum(event []byte) (uint64, error) {
	d := json.NewDecoder(bytes.NewReader(event))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return 0, fmt.Errorf("not a JSON object: %w", err)
	}
	delete(tree, "sequence")
	delete(tree, "replay")
	data, _ := tree["data"].(map[string]any)
	if answer, ok := data["answer"].(map[string]any); ok {
		delete(answer, "subject")
	}
	text, err := json.Marshal(tree) // with its members in order
	if err != nil {
		return 0, fmt.Errorf("encode: %w", err)
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // never fails
	return h.Sum64(), nil
}
