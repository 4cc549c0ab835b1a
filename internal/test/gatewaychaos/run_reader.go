package gatewaychaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/agui"
)

// maxLine bounds a line of a stream: clients accept events of up to 10 MiB.
const maxLine = 16 << 20

// End is how a stream of AG-UI ended.
type End struct {
	Type     agui.EventType // of its last event, "" if it was cut before
	Outcome  *agui.Outcome
	Code     string            // of a RUN_ERROR
	Messages []json.RawMessage // of its snapshot, as a client sends them back; nil without one
}

// RunReader reads a stream into its log.
type RunReader struct {
	Log   *RunLog
	Input *agui.RunAgentInput

	verifier *agui.Verifier
	first    agui.Event
	count    int
	burst    []Item
	text     agui.TextMessageStart // the text that is open
	content  strings.Builder
	end      End
}

// Read reads a stream to its end. A stream that ends in an orderly way without a last event breaks the protocol: clients would take it for
// a success. The error is why it was cut.
func (r *RunReader) Read(body io.Reader) (End, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	id, data := uint64(0), ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "id":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				r.brokenf("id %q is not a sequence", value)
			}
			id = n
		case field == "data":
			data = value
		case lines.Text() == "" && data != "": // a frame that was cut has no end
			r.take([]byte(data))
			r.closeBurst(id)
			id, data = 0, ""
		}
	}
	if err := lines.Err(); err != nil {
		return r.end, fmt.Errorf("read a stream: %w", err)
	}
	if r.end.Type == "" {
		r.brokenf("the stream ended without a last event, after %d", r.count)
	}
	return r.end, nil
}

func (r *RunReader) brokenf(format string, args ...any) {
	r.Log.Broken = append(r.Log.Broken, fmt.Sprintf(format, args...))
}

// closeBurst notes what was shown of one record: its last event has the sequence as its id.
func (r *RunReader) closeBurst(sequence uint64) {
	if sequence == 0 {
		return
	}
	if r.end.Messages != nil && r.Log.Cursor == 0 {
		r.Log.Cursor = sequence
	} else {
		r.Log.Bursts = append(r.Log.Bursts, Burst{Sequence: sequence, Items: r.burst})
	}
	r.burst = nil
}

// take verifies an event and notes what it displays.
func (r *RunReader) take(data []byte) {
	e, err := decodeEvent(data)
	if err != nil {
		r.brokenf("event %d: %v", r.count+1, err)
		return
	}
	if err := r.verify(e); err != nil {
		r.brokenf("%v", err)
	}
	switch e := e.(type) {
	case *agui.MessagesSnapshot:
		r.snapshot(e, data)
	case *agui.TextMessageStart:
		r.text = *e
		r.content.Reset()
	case *agui.TextMessageContent:
		r.content.WriteString(e.Delta)
	case *agui.TextMessageEnd:
		kind := itemText
		if r.text.Role == agui.RoleUser {
			kind = itemUser
		}
		r.burst = append(r.burst, Item{Kind: kind, ID: e.MessageID, Text: r.content.String()})
	case *agui.ToolCallEnd:
		r.burst = append(r.burst, Item{Kind: itemCall, ID: e.ToolCallID})
	case *agui.ToolCallResult:
		r.burst = append(r.burst, Item{Kind: itemResult, ID: e.MessageID, Call: e.ToolCallID, Text: canonical([]byte(e.Content.String()))})
	case *agui.RunFinished:
		r.end.Type, r.end.Outcome = e.Type(), e.Outcome
	case *agui.RunError:
		r.end.Type, r.end.Code = e.Type(), e.Code
	}
}

// verify checks an event against the rules of streams. A snapshot that comes first replaces what the client has.
func (r *RunReader) verify(e agui.Event) error {
	if r.count++; r.count == 1 {
		r.first = e
	}
	if _, replaces := e.(*agui.MessagesSnapshot); r.verifier == nil || replaces && r.count == 2 {
		in := *r.Input
		if replaces {
			in.Messages = nil
		}
		r.verifier = agui.NewVerifier(&in)
		if replaces {
			if err := r.verifier.Check(r.first); err != nil {
				return fmt.Errorf("begin: %w", err)
			}
		}
	}
	if err := r.verifier.Check(e); err != nil {
		return fmt.Errorf("protocol: %w", err)
	}
	return nil
}

// snapshot notes what a snapshot of messages displays.
func (r *RunReader) snapshot(e *agui.MessagesSnapshot, data []byte) {
	var raw struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(data, &raw); err != nil || r.end.Messages != nil {
		r.brokenf("event %d: another snapshot of messages: %v", r.count, err)
	}
	r.end.Messages = raw.Messages
	if r.end.Messages == nil {
		r.end.Messages = []json.RawMessage{}
	}
	for _, m := range e.Messages {
		r.Log.Snapshot = append(r.Log.Snapshot, itemsOf(m)...)
	}
}

// itemsOf returns what a message displays.
func itemsOf(m agui.Message) []Item {
	switch {
	case m.Role == agui.RoleTool:
		return []Item{{Kind: itemResult, ID: m.ID, Call: m.ToolCallID, Text: canonical([]byte(m.Content.String()))}}
	case m.Role == agui.RoleUser:
		return []Item{{Kind: itemUser, ID: m.ID, Text: m.Content.String()}}
	case len(m.ToolCalls) > 0:
		items := make([]Item, 0, len(m.ToolCalls))
		for _, call := range m.ToolCalls {
			items = append(items, Item{Kind: itemCall, ID: call.ID})
		}
		return items
	}
	return []Item{{Kind: itemText, ID: m.ID, Text: m.Content.String()}}
}

// decodeEvent decodes an event of a stream.
func decodeEvent(data []byte) (agui.Event, error) {
	var head struct {
		Type agui.EventType `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not an event: %w", err)
	}
	e := newEvent(head.Type)
	if e == nil {
		return nil, fmt.Errorf("unexpected type %q", head.Type)
	}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("%s: %w", head.Type, err)
	}
	return e, nil
}

// newEvent returns an event of a type that gateways send, nil for another.
func newEvent(kind agui.EventType) agui.Event {
	switch kind {
	case agui.TypeRunStarted:
		return &agui.RunStarted{}
	case agui.TypeRunFinished:
		return &agui.RunFinished{}
	case agui.TypeRunError:
		return &agui.RunError{}
	case agui.TypeStepStarted:
		return &agui.StepStarted{}
	case agui.TypeStepFinished:
		return &agui.StepFinished{}
	case agui.TypeTextMessageStart:
		return &agui.TextMessageStart{}
	case agui.TypeTextMessageContent:
		return &agui.TextMessageContent{}
	case agui.TypeTextMessageEnd:
		return &agui.TextMessageEnd{}
	case agui.TypeToolCallStart:
		return &agui.ToolCallStart{}
	case agui.TypeToolCallArgs:
		return &agui.ToolCallArgs{}
	case agui.TypeToolCallEnd:
		return &agui.ToolCallEnd{}
	case agui.TypeToolCallResult:
		return &agui.ToolCallResult{}
	case agui.TypeStateSnapshot:
		return &agui.StateSnapshot{}
	case agui.TypeStateDelta:
		return &agui.StateDelta{}
	case agui.TypeMessagesSnapshot:
		return &agui.MessagesSnapshot{}
	case agui.TypeActivitySnapshot:
		return &agui.ActivitySnapshot{}
	case agui.TypeActivityDelta:
		return &agui.ActivityDelta{}
	case agui.TypeCustom:
		return &agui.Custom{}
	default:
		return nil
	}
}
