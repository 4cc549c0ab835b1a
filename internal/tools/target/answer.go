package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/oneturn/oneturn/events"
)

// Bodies of tools outside, as they come: JSON, texts, media types with mistakes. Answer reads a result,
// FailureText the text of a failure; each reason is safe to display.

// JSON reads the JSON that a tool elsewhere has answered: white space and a byte order mark around
// it do not count, and nothing is nil. why is what is wrong with it, in a text that contains nothing of
// it; "" if it can be used.
func JSON(data []byte) (value json.RawMessage, why string) {
	data = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\ufeff")))
	switch {
	case len(data) == 0:
		return nil, ""
	case wide(data):
		return nil, "it is UTF-16: send UTF-8"
	case !utf8.Valid(data):
		return nil, "it is not UTF-8: send UTF-8"
	}
	_, err := events.Decode(data)
	if err == nil {
		return data, ""
	}
	var syntax *events.SyntaxError
	if word := notNumber.FindSubmatch(data); word != nil {
		return nil, "it has " + string(word[1]) + " where a value is expected; write null, or a text"
	}
	if data[0] == '<' {
		return nil, "it is a page or XML, such as a login page or the page of a proxy"
	}
	if errors.As(err, &syntax) {
		return nil, syntax.Error()
	}
	return nil, "it is too deep or too large to be read"
}

// notNumber matches what programs write for floats that JSON does not have.
var notNumber = regexp.MustCompile(`(?:^|[:\[,])\s*(-?(?:NaN|Infinity|nan|inf|undefined))\s*(?:[,}\]]|$)`)

// wide reports whether a text is UTF-16, of which every other byte of plain letters is zero.
func wide(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) || len(data) > 1 && (data[0] == 0) != (data[1] == 0)
}

// Kind of what an answer holds.
type Kind int

// Kinds of content.
const (
	KindUnknown Kind = iota // not declared
	KindJSON
	KindText
	KindPage   // HTML, which servers also declare for JSON
	KindBinary // bytes of an unspecified type
	KindOther  // named, and neither of these
)

// ContentKind reads a media type as servers write it, with mistakes: in any case, twice, with parameters that
// are none. Name and charset are in lower case.
func ContentKind(contentType string) (kind Kind, name, charset string) {
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		name = strings.ToLower(strings.TrimSpace(contentType))
		if i := strings.IndexAny(name, ";, \t"); i >= 0 {
			name = name[:i]
		}
	}
	charset = strings.ToLower(params["charset"])
	switch {
	case name == "":
		return KindUnknown, name, charset
	case name == "application/json", name == "application/x-json", name == "text/json", name == "text/x-json",
		strings.HasPrefix(name, "application/") && strings.HasSuffix(name, "+json"):
		return KindJSON, name, charset
	case name == "text/html", name == "application/xhtml+xml":
		return KindPage, name, charset
	case strings.HasPrefix(name, "text/"):
		return KindText, name, charset
	case name == "application/octet-stream", name == "binary/octet-stream", name == "application/x-www-form-urlencoded":
		return KindBinary, name, charset
	}
	return KindOther, name, charset
}

// Answer reads what a tool elsewhere has answered, by the media type that it gives: JSON as it is, texts
// as strings, nothing as nil. Where it gives none, or one that servers give to anything, an answer that is an object or
// a list is JSON. why is as for [JSON].
func Answer(data []byte, contentType string) (value json.RawMessage, why string) {
	kind, name, charset := ContentKind(contentType)
	value, why = JSON(data)
	if kind == KindJSON || value == nil && why == "" {
		return value, why
	}
	structured := why == "" && (value[0] == '{' || value[0] == '[')
	begins := len(data) > 0 && strings.ContainsRune("{[", rune(bytes.TrimSpace(data)[0]))
	switch {
	case kind == KindUnknown && (why == "" || begins), kind == KindBinary && structured, kind == KindPage && structured:
		return value, why
	case kind == KindBinary, kind == KindOther:
		return nil, "its Content-Type is " + clip(name) + ": send application/json, or text in UTF-8"
	}
	return text(data, charset)
}

// text makes a string of a text in UTF-8.
func text(data []byte, charset string) (value json.RawMessage, why string) {
	switch charset {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
	default:
		return nil, "it is text in charset " + clip(charset) + ": send UTF-8"
	}
	if wide(data) {
		return nil, "it is text in UTF-16: send UTF-8"
	}
	if !utf8.Valid(data) {
		return nil, "it is text that is not UTF-8: send UTF-8"
	}
	value, err := json.Marshal(string(bytes.TrimPrefix(data, []byte("\ufeff"))))
	if err != nil { // a string has a JSON form
		return nil, "it has no JSON form"
	}
	return value, ""
}

// clip makes a name that a server sends safe to display.
func clip(name string) string {
	const most = 80
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, name)
	return `"` + name[:min(len(name), most)] + `"`
}

// FailureText finds the text of a failure: by the fields of RFC 9457, or by the names that frameworks use.
func FailureText(tree any) string {
	switch v := tree.(type) {
	case string:
		return v
	case map[string]any:
		for _, name := range []string{"detail", "message", "error_description", "error", "title"} {
			if text := FailureText(v[name]); text != "" {
				return text
			}
		}
	case []any: // a list of violations, as frameworks make of a failed validation
		var all []string
		for _, one := range v[:min(len(v), 10)] {
			object, _ := one.(map[string]any)
			for _, name := range []string{"detail", "message", "msg"} {
				if text, ok := object[name].(string); ok {
					all = append(all, text)
					break
				}
			}
		}
		return strings.Join(all, "; ")
	}
	return ""
}
