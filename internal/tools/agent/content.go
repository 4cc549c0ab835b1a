package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// part is one of the parts that the content of an answer may be a list of.
type part struct {
	Type    string          `json:"type"`
	Text    json.RawMessage `json:"text"` // a text, or {"value": a text}
	Refusal string          `json:"refusal"`
}

// contentOf reads the content of an answer: a text, or the texts of a list of parts. Parts that
// hold reasoning are not part of the answer.
func contentOf(content json.RawMessage) (text, refusal string, err error) {
	if none(content) || json.Unmarshal(content, &text) == nil {
		return text, "", nil
	}
	var raw []json.RawMessage
	if json.Unmarshal(content, &raw) != nil {
		raw = []json.RawMessage{content} // one part without a list
	}
	var b strings.Builder
	var others []string
	for _, item := range raw {
		var plain string
		if json.Unmarshal(item, &plain) == nil {
			b.WriteString(plain)
			continue
		}
		var p part
		if json.Unmarshal(item, &p) != nil {
			return "", "", errors.New("a part of its content is neither a text nor an object")
		}
		switch content, ok := p.content(); {
		case p.Refusal != "":
			refusal = p.Refusal
		case reasons(p.Type):
		case ok:
			b.WriteString(content)
		default:
			others = append(others, fmt.Sprintf("%.40q", p.Type))
		}
	}
	if b.Len() == 0 && refusal == "" && len(others) > 0 {
		return "", "", fmt.Errorf("its content has no text, but parts of type %s", strings.Join(slices.Compact(others), ", "))
	}
	return b.String(), refusal, nil
}

// content returns the text of a part, if it has one.
func (p *part) content() (string, bool) {
	var text string
	var inner struct {
		Value *string `json:"value"`
	}
	switch {
	case none(p.Text):
		return "", false
	case json.Unmarshal(p.Text, &text) == nil:
		return text, true
	case json.Unmarshal(p.Text, &inner) == nil && inner.Value != nil:
		return *inner.Value, true
	}
	return "", false
}

// reasons reports whether parts of a type hold reasoning.
func reasons(kind string) bool {
	kind = strings.ToLower(kind)
	return strings.Contains(kind, "think") || strings.Contains(kind, "reason") || kind == "thought" || kind == "analysis"
}

// failure returns the error that an answer with status 200 holds, nil if it holds none.
func (e *endpoint) failure(op string, r *response) error {
	if !none(r.Error) && !bytes.Equal(bytes.TrimSpace(r.Error), []byte("{}")) {
		return e.client.FailureOf(op, r.Error)
	}
	if len(r.Choices) > 0 && !none(r.Choices[0].Error) {
		return e.client.FailureOf(op, r.Choices[0].Error)
	}
	return nil
}

func none(value json.RawMessage) bool { return len(value) == 0 || bytes.Equal(value, []byte("null")) }
