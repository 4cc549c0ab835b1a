package agui

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// encodeOptions: one line, members of maps in order, U+FFFD for bytes that are not UTF-8, and numbers of
// encoding/json as numbers.
//
//nolint:gochecknoglobals // read-only
var encodeOptions = json.JoinOptions(
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true),
	json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, n stdjson.Number) error {
		if n == "" { // as encoding/json
			n = "0"
		}
		return enc.WriteValue(jsontext.Value(n))
	})),
)

// typed is an event with its type in front.
type typed[T any] struct {
	Type   EventType `json:"type"`
	Fields *T        `json:",embed"`
}

// encodeEvent returns an event as one line of JSON: its type, then its fields. Characters of HTML are not escaped, since the
// line is not part of a page.
func encodeEvent[T any](t EventType, fields *T) ([]byte, error) {
	b, err := json.Marshal(&typed[T]{t, fields}, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", t, err)
	}
	return b, nil
}
