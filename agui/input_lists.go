package agui

import (
	"errors"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeLists decodes lists of an input up to the first value that cannot be used: a value takes many times the memory of its
// JSON, and a client can send many empty ones.
//
//nolint:gochecknoglobals // read-only
var decodeLists = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(decodeList[Message]),
	json.UnmarshalFromFunc(decodeList[ContentPart]),
	json.UnmarshalFromFunc(decodeList[Tool]),
	json.UnmarshalFromFunc(decodeList[ResumeEntry]),
))

func decodeList[T interface{ check() error }](d *jsontext.Decoder, list *[]T) error {
	if d.PeekKind() != jsontext.KindBeginArray {
		return errors.ErrUnsupported // the usual way, which has an error for each other type
	}
	if _, err := d.ReadToken(); err != nil {
		return err //nolint:wrapcheck // the decoder adds the place
	}
	*list = []T{}
	for i := 0; d.PeekKind() != jsontext.KindEndArray; i++ {
		var v T
		if err := json.UnmarshalDecode(d, &v); err != nil {
			return err //nolint:wrapcheck // as above
		}
		if err := v.check(); err != nil {
			return &memberError{pointer: Pointer(strconv.Itoa(i)), err: err}
		}
		*list = append(*list, v)
	}
	_, err := d.ReadToken()
	return err //nolint:wrapcheck // as above
}
