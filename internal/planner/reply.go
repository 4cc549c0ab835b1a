package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
)

// MaxReply bounds a reply, in bytes.
const MaxReply = 256 << 10

// ReadReply reads the result of an agent: a JSON object is the program, a JSON string is read by [ReadText].
func ReadReply(reply json.RawMessage) (map[string]any, error) {
	if len(reply) > 2*MaxReply { // a text may be escaped
		return nil, tooLong(len(reply))
	}
	trimmed := bytes.TrimSpace(reply)
	if len(trimmed) > 0 && trimmed[0] == '{' {
		return object(string(trimmed))
	}
	text, ok := textOf(reply)
	if !ok {
		return nil, errors.New("it has to be one JSON object, or a text that contains nothing else")
	}
	return ReadText(text)
}

// ReadText reads a reply that is exactly one JSON object, or one code fence around it. Reasoning in the marks of
// [agentjson.WithoutReasoning] is not part of the reply. Any other text around the object is an error: part of it may be
// meant to change the program. The time is linear in the text; the error contains none of its values.
func ReadText(text string) (map[string]any, error) {
	if len(text) > MaxReply {
		return nil, tooLong(len(text))
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if !strings.HasPrefix(text, "{") {
		answer, open := agentjson.WithoutReasoning(text)
		if open {
			return nil, errors.New("it ends inside its reasoning")
		}
		text = strings.TrimSpace(answer)
	}
	if rest, fenced := strings.CutPrefix(text, fence); fenced {
		info, body, ok := strings.Cut(rest, "\n")
		if ok {
			body, ok = strings.CutSuffix(body, fence)
		}
		if info = strings.TrimSpace(info); !ok || info != "" && !strings.EqualFold(info, "json") {
			return nil, errors.New("a code fence has to begin with ```json, to end with ``` and to contain the whole reply")
		}
		text = strings.TrimSpace(body)
	}
	return object(text)
}

const fence = "```"

// object reads one JSON object.
func object(text string) (map[string]any, error) {
	switch {
	case len(text) > MaxReply:
		return nil, tooLong(len(text))
	case text == "":
		return nil, errors.New("it is empty")
	case strings.HasPrefix(text, "["):
		return nil, errors.New("it has to be one JSON object, not an array")
	case !strings.HasPrefix(text, "{"):
		return nil, errors.New("it has to begin with { and to be one JSON object: there is a text before it, or no object at all")
	}
	v, err := events.Decode([]byte(text))
	if err != nil {
		return nil, errors.New(excerpt.Line(err.Error(), maxReason))
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it has to be one JSON object")
	}
	return m, nil
}

// maxReason bounds the reason why a reply is not JSON, in bytes.
const maxReason = 500

func tooLong(n int) error { return fmt.Errorf("it has %d bytes; the limit is %d", n, MaxReply) }

// textOf returns the text of a JSON string.
func textOf(value json.RawMessage) (text string, ok bool) {
	if v, err := events.Decode(value); err == nil {
		text, ok = v.(string)
	}
	return text, ok
}

// replyText is a reply as its agent wrote it.
func replyText(reply json.RawMessage) string {
	if text, ok := textOf(reply); ok {
		return text
	}
	return string(reply)
}

// stored is a reply as it is stored: the object in it if there is one, else the text, bounded. What is not read is not
// read from its stored form either.
func stored(reply json.RawMessage) json.RawMessage {
	if plan, err := ReadReply(reply); err == nil {
		if data, err := events.AppendJSON(nil, plan); err == nil && len(data) <= MaxReply {
			return data
		}
	}
	text, ok := textOf(reply)
	if ok && len(text) <= MaxReply {
		return reply
	}
	if !ok {
		text = string(reply)
	}
	if len(text) > maxPrevious {
		text = excerpt.Of(text, maxPrevious) + "…"
	}
	data, err := json.Marshal("(not read) " + text)
	if err != nil { // a string has a JSON form
		return json.RawMessage(`"(not read)"`)
	}
	return data
}
