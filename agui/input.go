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
	if err := readInto(r, limits, in, decodeLists); err != nil {
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

// check returns an error if something is missing. Members of lists have been checked when they were decoded.
func (in *RunAgentInput) check() error {
	switch {
	case in.ThreadID == "":
		return missing("threadId", "the id of the conversation")
	case in.RunID == "":
		return missing("runId", "a new id for this run")
	case in.Messages == nil:
		return missing("messages", "a list, which may be empty")
	}
	return nil
}

// check returns an error if the message lacks something.
func (m Message) check() error {
	switch {
	case m.ID == "":
		return missingMember("/id", "the id of the message")
	case m.Role == "":
		return missingMember("/role", "user, assistant or another role")
	case m.Role == RoleTool && m.ToolCallID == "":
		return missingMember("/toolCallId", "the call that the message answers")
	}
	for k, call := range m.ToolCalls {
		if call.ID == "" {
			return missingMember(Pointer("toolCalls", strconv.Itoa(k), "id"), "the id of the call")
		}
	}
	return nil
}

func (t Tool) check() error {
	if t.Name == "" {
		return missingMember("/name", "the name of the tool")
	}
	return nil
}

func (e ResumeEntry) check() error {
	if e.InterruptID == "" {
		return missingMember("/interruptId", "the id of the interrupt that is answered")
	}
	if e.Status != ResumeResolved && e.Status != ResumeCancelled {
		return &memberError{pointer: "/status", code: CodeInvalidField, msg: `has to be "resolved" or "cancelled"`}
	}
	return nil
}

func (p ContentPart) check() error {
	if p.Type == "" {
		return missingMember("/type", "text, image or another type of parts")
	}
	return nil
}

func missing(field, what string) error {
	return &InputError{Code: CodeMissingField, Field: field, Msg: "required: send " + what}
}

func missingMember(pointer, what string) error {
	return &memberError{pointer: pointer, code: CodeMissingField, msg: "required: send " + what}
}

// unmarshalError names the field of another type than required, and what is required.
func unmarshalError(err error) error {
	var pointer strings.Builder
	refused := &InputError{Code: CodeInvalidField, Msg: "has to be what the protocol defines"}
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch part := e.(type) { //nolint:errorlint // each link of the chain has a part of the pointer
		case *json.SemanticError:
			pointer.WriteString(string(part.JSONPointer))
			if part.GoType != nil {
				refused.Msg = "has to be " + typeName(part.GoType)
			}
		case *memberError:
			pointer.WriteString(part.pointer)
			if part.code != "" {
				refused.Code, refused.Msg = part.code, part.msg
			}
		default:
		}
	}
	refused.Field = fieldOf(jsontext.Pointer(pointer.String()))
	return refused
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
