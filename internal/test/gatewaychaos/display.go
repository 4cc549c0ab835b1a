package gatewaychaos

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
)

// What a client of AG-UI displays is computed here a second time, from docs/gateway.md, and not by the package that gateways use.

// Item is a message, a call or a result that a client displays.
type Item struct {
	Kind string // user, text, call or result
	ID   string // of the message; of a call its tool_call_id
	Call string // of a result: the call
	Text string // content; "" if it is not compared
}

// Kinds of items.
const (
	itemUser   = "user"
	itemText   = "text"
	itemCall   = "call"
	itemResult = "result"
)

// String names the item, in violations.
func (i Item) String() string { return i.Kind + " " + i.ID }

// same reports whether two items are the same to a client.
func (i Item) same(o Item) bool {
	return i.Kind == o.Kind && i.ID == o.ID && i.Call == o.Call && (i.Text == "" || o.Text == "" || i.Text == o.Text)
}

// items returns what an event adds to what is displayed of its chat.
func (c *chat) items(sequence uint64, e *event) []Item {
	switch e.Kind {
	case events.KindUserMessage:
		if c.stored[e.MessageID] == 0 {
			c.stored[e.MessageID] = sequence
		}
		return c.message(e, Item{Kind: itemUser, ID: e.MessageID, Text: contentOf(e.Content)})
	case events.KindText:
		return c.message(e, Item{Kind: itemText, ID: agui.MessageID(e.MessageID), Text: contentOf(e.Content)})
	case events.KindToolCall:
		return c.call(e)
	case events.KindToolCallAck, events.KindToolCallDismiss:
		if at := slices.IndexFunc(c.asking, func(q question) bool { return q.id == e.ToolCallID }); at >= 0 {
			c.asking = slices.Delete(c.asking, at, at+1)
			return c.result(e.ToolCallID, "")
		}
	case events.KindToolResponse:
		return c.response(e)
	}
	return nil
}

func (c *chat) message(e *event, i Item) []Item {
	if c.shown[i.Kind+" "+e.MessageID] {
		return nil
	}
	c.shown[i.Kind+" "+e.MessageID] = true
	if !e.visible() {
		return nil
	}
	return []Item{i}
}

func (c *chat) call(e *event) []Item {
	id := e.ToolCallID
	if c.shown[itemCall+" "+id] {
		return nil
	}
	c.shown[itemCall+" "+id] = true
	items := []Item{{Kind: itemCall, ID: id}}
	if e.InteractionType == events.InteractionAutoTool {
		return items
	}
	if !e.Awaiting {
		return append(items, c.result(id, "")...)
	}
	q := question{id: id, call: id}
	if call, _, ok := events.ParseQuestionID(id); ok {
		q.call = call
	}
	if q.turn = e.Program; q.turn == "" {
		q.turn = q.call
	}
	c.asking = append(c.asking, q)
	return items
}

// response ends a call, and closes the questions that are open in it.
func (c *chat) response(e *event) []Item {
	c.ended[e.ToolCallID] = true
	var items []Item
	c.asking = slices.DeleteFunc(c.asking, func(q question) bool {
		closed := q.call == e.ToolCallID || e.Step == "" && q.turn == e.ToolCallID
		if closed {
			items = append(items, c.result(q.id, "")...)
		}
		return closed
	})
	if !c.shown[itemCall+" "+e.ToolCallID] {
		return items
	}
	text := ""
	if e.Code == "" {
		text = canonical(e.Payload)
	}
	return append(items, c.result(e.ToolCallID, text)...)
}

func (c *chat) result(call, text string) []Item {
	if c.results[call] {
		return nil
	}
	c.results[call] = true
	return []Item{{Kind: itemResult, ID: agui.ResultID(call), Call: call, Text: text}}
}

// contentOf is a content that is a text, "" for any other.
func contentOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // not a text
	return text
}

// canonical is JSON with its members in order, "" for null and for what is not JSON.
func canonical(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// fold adds items to a list as a client does: a result follows its call.
func fold(list, items []Item) []Item {
	for _, i := range items {
		at := -1
		if i.Kind == itemResult {
			at = slices.IndexFunc(list, func(o Item) bool { return o.Kind == itemCall && o.ID == i.Call })
		}
		if at >= 0 {
			list = slices.Insert(list, at+1, i)
		} else {
			list = append(list, i)
		}
	}
	return list
}
