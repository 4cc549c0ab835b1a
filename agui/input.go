package agui

import (
	stdjson "encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// RunAgentInput is the body of a request to run an agent. State, ForwardedProps and payloads are JSON as the client wrote it.
type RunAgentInput struct {
	ThreadID        string `json:"threadId"`
	RunID           string `json:"runId"`
	ProtocolVersion string `json:"protocolVersion,omitzero"` // "" before 1.0
	ParentRunID     string `json:"parentRunId,omitzero"`

	// Messages are those that the client sends: all, some or none of the conversation.
	Messages       []Message          `json:"messages"`
	State          stdjson.RawMessage `json:"state,omitzero"`
	Tools          []Tool             `json:"tools,omitempty"`
	Context        []Context          `json:"context,omitempty"`
	ForwardedProps stdjson.RawMessage `json:"forwardedProps,omitzero"`
	Resume         []ResumeEntry      `json:"resume,omitempty"`
}

// Peer returns the version of AG-UI that the client speaks. A version that [ReadInput] refuses is the zero Peer.
func (in *RunAgentInput) Peer() Peer {
	peer, err := ParsePeer(in.ProtocolVersion)
	if err != nil {
		return Peer{}
	}
	return peer
}

// Tool returns the tool of the client with this name.
func (in *RunAgentInput) Tool(name string) (Tool, bool) {
	for _, tool := range in.Tools {
		if tool.Name == name {
			return tool, true
		}
	}
	return Tool{}, false
}

// InputLimits bound an input. Zero fields have the default.
type InputLimits struct {
	Bytes  int64 // 1 MiB
	Depth  int   // 64 arrays and objects inside each other
	Values int   // 100,000
}

// ReadInput reads the input of a run from r, usually the body of a request. Unknown members are ignored, at every level. An
// input that it refuses is an *[InputError]; other errors come from r.
func ReadInput(r io.Reader, limits InputLimits) (*RunAgentInput, error) {
	in := &RunAgentInput{}
	if err := readInto(r, limits, in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if _, err := ParsePeer(in.ProtocolVersion); err != nil {
		return nil, err
	}
	return in, nil
}

// check returns an error if something is missing.
func (in *RunAgentInput) check() error {
	switch {
	case in.ThreadID == "":
		return missing("threadId", "the id of the conversation")
	case in.RunID == "":
		return missing("runId", "a new id for this run")
	case in.Messages == nil:
		return missing("messages", "a list, which may be empty")
	}
	for i, m := range in.Messages {
		if m.ID == "" {
			return missing(place("messages", i, "id"), "the id of the message")
		}
		if m.Role == "" {
			return missing(place("messages", i, "role"), "user, assistant or another role")
		}
		if m.Role == RoleTool && m.ToolCallID == "" {
			return missing(place("messages", i, "toolCallId"), "the call that the message answers")
		}
		for k, call := range m.ToolCalls {
			if call.ID == "" {
				return missing(place(place("messages", i, "toolCalls"), k, "id"), "the id of the call")
			}
		}
	}
	for i, tool := range in.Tools {
		if tool.Name == "" {
			return missing(place("tools", i, "name"), "the name of the tool")
		}
	}
	for i, entry := range in.Resume {
		if entry.InterruptID == "" {
			return missing(place("resume", i, "interruptId"), "the id of the interrupt that is answered")
		}
		if entry.Status != ResumeResolved && entry.Status != ResumeCancelled {
			return &InputError{Code: CodeInvalidField, Field: place("resume", i, "status"), Msg: `has to be "resolved" or "cancelled"`}
		}
	}
	return nil
}

func missing(field, what string) error {
	return &InputError{Code: CodeMissingField, Field: field, Msg: "required: send " + what}
}

func place(list string, i int, field string) string {
	return list + "[" + strconv.Itoa(i) + "]." + field
}

// unmarshalError names the field of another type than required, and what is required.
func unmarshalError(err error) error {
	pointer, want := "", "what the protocol defines"
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch part := e.(type) { //nolint:errorlint // each link of the chain has a part of the pointer
		case *json.SemanticError:
			pointer += string(part.JSONPointer)
			if part.GoType != nil {
				want = typeName(part.GoType)
			}
		case *memberError:
			pointer += part.pointer
			if part.want != "" {
				want = part.want
			}
		default:
		}
	}
	return &InputError{Code: CodeInvalidField, Field: fieldOf(jsontext.Pointer(pointer)), Msg: "has to be " + want}
}

// typeName names the JSON type of a Go type.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return typeName(t.Elem())
	default:
		return "of another type"
	}
}

// maxField bounds the names of fields in errors: keys may be as long as the document.
const maxField = 200

// fieldOf writes a pointer the way people write fields: messages[2].id. What cannot be printed, in names of the client, is '?'.
func fieldOf(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, isIndex := number(token); isIndex {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	printable := func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}
	return strings.Map(printable, strings.ToValidUTF8(b.String()[:min(b.Len(), maxField)], ""))
}
