package display_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
)

// client does with events what a client of AG-UI does: it keeps messages and a state. Each event passes the verifier.
type client struct {
	t        *testing.T
	verifier *agui.Verifier
	messages []agui.Message
	state    any
	acts     map[string]any
}

func newClient(t *testing.T) *client {
	t.Helper()
	in := &agui.RunAgentInput{ThreadID: "c", RunID: "r", Messages: []agui.Message{}}
	c := &client{t: t, messages: []agui.Message{}, verifier: agui.NewVerifier(in), acts: map[string]any{}}
	c.take(&agui.RunStarted{ThreadID: "c", RunID: "r", ProtocolVersion: agui.ProtocolVersion})
	return c
}

func (c *client) take(all ...agui.Event) {
	c.t.Helper()
	for _, e := range all {
		require.NoError(c.t, c.verifier.Check(e))
		if shared, ok := e.(*agui.Shared); ok {
			e = shared.Event
		}
		switch e := e.(type) {
		case *agui.MessagesSnapshot:
			c.messages = e.Messages
		case *agui.StateSnapshot:
			c.state = tree(c.t, e.Snapshot)
		case *agui.StateDelta:
			for _, op := range e.Delta {
				c.state = patched(c.t, c.state, op)
			}
		case *agui.TextMessageStart:
			c.messages = append(c.messages, agui.Message{ID: e.MessageID, Role: e.Role, Name: e.Name})
		case *agui.TextMessageContent:
			m := &c.messages[c.at(e.MessageID)]
			m.Content = agui.Text(m.Content.Text + e.Delta)
		case *agui.ToolCallStart:
			call := agui.Call(e.ToolCallID, e.ToolCallName, "")
			call.Metadata = metadataOf(e.Metadata)
			c.messages = append(c.messages, agui.AssistantMessage(e.ToolCallID, "", call))
		case *agui.ToolCallArgs:
			c.messages[c.at(e.ToolCallID)].ToolCalls[0].Function.Arguments += e.Delta
		case *agui.ToolCallResult:
			at := c.at(e.ToolCallID) + 1
			result := agui.ToolMessage(e.MessageID, e.ToolCallID, e.Content.String())
			result.Metadata = metadataOf(e.Metadata)
			c.messages = slices.Insert(c.messages, at, result)
		case *agui.Custom:
			if e.Name == "oneturn.tool_call_dismiss" {
				id := c.tree(e.Value)["tool_call_id"]
				c.messages = slices.DeleteFunc(c.messages, func(m agui.Message) bool { return m.ID == id || m.ToolCallID == id })
			}
		case *agui.ActivitySnapshot:
			c.acts[e.MessageID] = tree(c.t, e.Content)
		case *agui.ActivityDelta:
			for _, op := range e.Patch {
				c.acts[e.MessageID] = patched(c.t, c.acts[e.MessageID], op)
			}
		}
	}
}

func (c *client) at(id string) int {
	at := slices.IndexFunc(c.messages, func(m agui.Message) bool { return m.ID == id })
	require.GreaterOrEqual(c.t, at, 0, "message %s", id)
	return at
}

// displayed is what a person sees.
func (c *client) displayed() string {
	data, err := json.MarshalIndent(map[string]any{"messages": c.messages, "state": c.state}, "", " ")
	require.NoError(c.t, err)
	return string(data)
}

func (c *client) tree(v any) map[string]any {
	object, ok := tree(c.t, v).(map[string]any)
	require.True(c.t, ok)
	return object
}

func tree(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// patched applies an operation of a JSON patch. Clients skip one that does not apply; here that is a failure.
func patched(t *testing.T, doc any, op agui.PatchOp) any {
	t.Helper()
	keys := strings.Split(op.Path, "/")[1:]
	for i, k := range keys {
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
	}
	parent := doc
	for _, k := range keys[:len(keys)-1] {
		switch p := parent.(type) {
		case map[string]any:
			require.Contains(t, p, k, op.Path)
			parent = p[k]
		case []any:
			n, err := strconv.Atoi(k)
			require.NoError(t, err)
			parent = p[n]
		default:
			require.Fail(t, "no parent", op.Path)
		}
	}
	object, ok := parent.(map[string]any)
	require.True(t, ok, op.Path)
	last := keys[len(keys)-1]
	if op.Op != "add" {
		require.Contains(t, object, last, "%s %s", op.Op, op.Path)
	}
	if op.Op == "remove" {
		delete(object, last)
	} else {
		object[last] = tree(t, op.Value)
	}
	return doc
}

// metadataOf is the metadata of an event, in the form of a message.
func metadataOf(m map[string]any) json.RawMessage {
	if m == nil {
		return nil
	}
	return events.JSONOf(m)
}
