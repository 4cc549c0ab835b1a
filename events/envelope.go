package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// An inbound body or a stored event is opened once, by [Parse]: kind, data and time stamp. The readers of one kind
// (turn, answer, cancel, resume, expire) are methods of the [Message]; events that oneturn itself has written are
// decoded into structs, by [Message.As] and the Read functions.

const opDecode = "decode event"

// Message is an event whose envelope has been opened, of whatever kind.
type Message struct {
	Kind      string         // data.kind, else the type, without "chat."; "" when the body has neither
	Data      map[string]any // the event itself
	Timestamp time.Time      // of the envelope, zero when absent

	deepest      int   // nesting of the body, an upper bound for each part
	nodes        int   // values in the body
	timestampErr error // an invalid timestamp, which only a turn has to have right

	size      int    // of the body in bytes
	canonical string // structured_data as it came, if it is canonical
}

// Parse decodes body by the rules of [Decode] and opens its envelope. A body with `type` and
// an object `data` is an envelope; any other object is bare data. Every error is an
// [ErrBadArgs] and, for broken JSON, wraps a *[SyntaxError]. A bad timestamp is reported by
// [Message.Turn] and [Message.Cancel] only.
func Parse(body []byte) (*Message, error) {
	p := parser{s: string(body)}
	v, err := p.document()
	if err != nil {
		return nil, &Error{Code: CodeBadArgs, Op: opDecode, Err: notAnObject(p.s, err)}
	}
	top, ok := v.(map[string]any)
	if !ok {
		return nil, wrongType("the body", "an object", v)
	}
	m := &Message{Data: top, deepest: p.deepest, nodes: p.nodes, size: len(body), canonical: p.canonicalData[0]}
	f := fields{data: top}
	if data, ok := top["data"].(map[string]any); ok && top["type"] != nil {
		m.Kind = strings.TrimPrefix(f.text("type"), TypePrefix)
		m.Timestamp, m.timestampErr = parseTime("timestamp", top["timestamp"])
		m.Data, m.canonical = data, p.canonicalData[1]
	} else if kind, _ := top["type"].(string); answers(kind) && top["kind"] == nil {
		m.Kind = kind // as frontends send answers: flat, next to the type
	} else if top["type"] != nil && top["kind"] == nil {
		return nil, wrongType("data", "an object next to type", top["data"])
	}
	f.data = m.Data
	kind := strings.TrimPrefix(f.text("kind"), TypePrefix)
	if f.err != nil {
		return nil, f.err
	}
	if kind != "" && m.Kind != "" && kind != m.Kind {
		return nil, decodeError(fmt.Sprintf("type is %.80q and data.kind %.80q: send one kind", m.Kind, kind))
	}
	if kind != "" {
		m.Kind = kind
	}
	return m, nil
}

// notAnObject is the error for a body that is not JSON: if it does not even begin as an object, the
// text asks for one instead of naming the character at which the value ends.
func notAnObject(body string, problem error) error {
	at := len(body) - len(strings.TrimLeft(body, " \t\r\n"))
	if at == len(body) || body[at] == '{' {
		return problem
	}
	return &SyntaxError{Offset: int64(at), Reason: "expected a JSON object"}
}

// ReadCall decodes a stored [ToolCall], of a claim or of a question.
func ReadCall(body []byte) (*ToolCall, error) { return read[ToolCall](body, KindToolCall) }

// ReadResponse decodes a stored [ToolResponse].
func ReadResponse(body []byte) (*ToolResponse, error) {
	return read[ToolResponse](body, KindToolResponse)
}

// ReadEndedResponse is [ReadResponse] with the time of the event.
func ReadEndedResponse(body []byte) (*ToolResponse, time.Time, error) {
	m, err := readAs(body, KindToolResponse)
	if err != nil {
		return nil, time.Time{}, err
	}
	r := new(ToolResponse)
	return r, m.Timestamp, m.As(r)
}

// ReadCancel decodes a stored [ToolCallCancel].
func ReadCancel(body []byte) (*ToolCallCancel, error) {
	return read[ToolCallCancel](body, KindToolCallCancel)
}

func read[T any](body []byte, kind string) (*T, error) {
	m, err := readAs(body, kind)
	if err != nil {
		return nil, err
	}
	event := new(T)
	return event, m.As(event)
}

func readAs(body []byte, kind string) (*Message, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	if m.Kind != kind {
		return nil, m.wrongKind(kind)
	}
	return m, nil
}

// As stores the event in a struct of this package such as *[ToolResponse]; values of type any
// become value trees. It is meant for events that oneturn itself has written.
func (m *Message) As(event any) error {
	data, err := AppendJSON(nil, m.Data)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(event); err != nil {
		return &Error{Code: CodeBadArgs, Op: opDecode, Msg: "read " + m.Kind, Err: err}
	}
	return nil
}

// want refuses a message of another kind. A bare body may leave its kind out.
func (m *Message) want(kind string) error {
	if m.Kind != "" && m.Kind != kind {
		return m.wrongKind(kind)
	}
	return nil
}

func (m *Message) wrongKind(want string) error {
	return decodeError(fmt.Sprintf("kind is %.80q: expected %q", m.Kind, want))
}

func decodeError(msg string) error { return &Error{Code: CodeBadArgs, Op: opDecode, Msg: msg} }

func wrongType(field, want string, got any) error {
	return decodeError(fmt.Sprintf("%s is %s: expected %s", field, typeName(got), want))
}

// typeName names the type of a value of a value tree, without showing the value.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null or absent"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}
