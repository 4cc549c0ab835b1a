package events

import (
	"encoding/json"
	"errors"

	"github.com/oneturn/oneturn/internal/excerpt"
)

// maxLogText bounds the text of an error in the log, in bytes.
const maxLogText = 1024

// LogText returns the text of an error for the log, cut at 1 KiB. Of broken JSON it names the offset and the reason,
// but not the keys on the way there: they can be names of people.
func LogText(err error) string {
	text := err.Error()
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		text = (&SyntaxError{Offset: syntax.Offset, Reason: syntax.Reason}).Error()
	}
	if len(text) > maxLogText {
		return excerpt.Of(text, maxLogText) + "…"
	}
	return text
}

// JSONOf encodes a value of this module's types, which always have a JSON form.
func JSONOf(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}
