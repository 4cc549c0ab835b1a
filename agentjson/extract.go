package agentjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// MaxTextBytes bounds the text that [Extract] reads.
const MaxTextBytes = 1 << 20

// Options have what is known about a text. The zero value is valid.
type Options struct {
	// Fits reports whether an object fits the model that was asked for. It decides between several objects. It is not
	// called for a text with one object: the caller validates the object that is returned. nil:
	// of several objects, the first is returned.
	Fits func(object map[string]any) bool
	// FinishReason is why the model stopped, as its endpoint reports it. A reason that means that the output is not
	// complete, see [Incomplete], is an error of code [Truncated], even if the text has a whole
	// object. "": not known.
	FinishReason string
}

// Found is the object of a text.
type Found struct {
	JSON     json.RawMessage // strict JSON; the bytes of the text if there are no repairs
	Object   map[string]any  // the same object as [events.Decode] returns it
	Repairs  []Repair        // in the order of their declaration; nil for valid JSON
	Around   []Surrounding   // in the order of their declaration
	Warnings []Warning
}

// Extract returns the object in a text that a model wrote. The rules are in the package comment.
// Every error is an *[Error]. The time is linear in the length of the text.
func Extract(text string, o Options) (Found, error) {
	if len(text) > MaxTextBytes {
		return Found{}, &Error{Code: TooLarge, Message: fmt.Sprintf("the text has more than %d bytes: send a shorter one", MaxTextBytes)}
	}
	if message := Incomplete(o.FinishReason); message != "" {
		e := &Error{Code: Truncated, Offset: len(text), Message: message}
		return Found{}, e.locate(text)
	}
	found, err := (&search{text: text, options: o}).run()
	if err != nil {
		return Found{}, err.locate(text)
	}
	return found, nil
}

// ExtractContent is [Extract] for the content of a message in JSON, as it is in an event: a JSON string is a text, an
// object is the object itself, and a list of one object stands for that object.
func ExtractContent(content json.RawMessage, o Options) (Found, error) {
	text := strings.Trim(string(content), " \t\r\n")
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		return Extract(text, o)
	}
	value, n, err := events.DecodePrefix(text)
	if problem := new(events.SyntaxError); errors.As(err, &problem) && codeOf(problem) == BadString {
		return Found{}, &Error{Code: BadString, Message: problem.Reason}
	}
	if err != nil || n < len(text) {
		return Found{}, &Error{Code: BadSyntax, Message: "the content is not JSON: send a text as a JSON string, or an object"}
	}
	return ExtractValue(value, o)
}

// ExtractValue is [ExtractContent] for content that [events.Decode] has decoded. The JSON of an object is canonical then.
func ExtractValue(content any, o Options) (Found, error) {
	switch content := content.(type) {
	case string:
		return Extract(content, o)
	case map[string]any, []any:
		data, err := events.AppendJSON(nil, content)
		if err != nil {
			return Found{}, &Error{Code: BadSyntax, Message: "the content has no JSON form: " + err.Error()}
		}
		return Extract(string(data), o)
	default:
		return Found{}, &Error{Code: NotAnObject, Message: "the content is neither a text nor an object: send one of them"}
	}
}
