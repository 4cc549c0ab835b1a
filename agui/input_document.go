package agui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	defaultBytes  = 1 << 20
	defaultDepth  = 64
	defaultValues = 100_000
	maxDigits     = 64 // characters of a number
)

// readInto decodes the one document of r.
func readInto(r io.Reader, limits InputLimits, v any, options ...json.Options) error {
	body, err := readDocument(r, limits)
	if err != nil {
		return err
	}
	// readDocument has refused duplicate names.
	if err := json.Unmarshal(body, v, append(options, jsontext.AllowDuplicateNames(true))...); err != nil {
		return unmarshalError(err)
	}
	return nil
}

// readDocument returns the one JSON document of r, whose size, depth and values are bounded, and which has no key twice.
func readDocument(r io.Reader, limits InputLimits) ([]byte, error) {
	limit := limits.Bytes
	if limit <= 0 {
		limit = defaultBytes
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, &InputError{Code: CodeTooLarge, Msg: fmt.Sprintf("over %d bytes: send fewer messages, the server has the others", limit)}
	}
	if err := checkDocument(body, limits); err != nil {
		return nil, err
	}
	return body, nil
}

// checkDocument reads the tokens of a document once, without keeping any.
func checkDocument(body []byte, limits InputLimits) error {
	depth, values := limits.Depth, limits.Values
	if depth <= 0 {
		depth = defaultDepth
	}
	if values <= 0 {
		values = defaultValues
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for first, whole := true, false; ; first = false {
		token, err := d.ReadToken()
		switch {
		case err == io.EOF && whole: //nolint:errorlint // the decoder returns it bare
			return nil
		case err != nil:
			return syntaxError(err)
		case whole:
			return &InputError{Code: CodeBadJSON, Msg: "more after the document: send one document"}
		case first && token.Kind() != jsontext.KindBeginObject:
			return &InputError{Code: CodeBadJSON, Msg: "not an object"}
		case d.StackDepth() > depth:
			return &InputError{Code: CodeBadJSON, Field: fieldOf(d.StackPointer()), Msg: fmt.Sprintf("more than %d lists and objects inside each other", depth)}
		}
		whole = d.StackDepth() == 0
		if token.Kind() == jsontext.KindNumber && !readable(token.String()) {
			return &InputError{Code: CodeBadJSON, Field: fieldOf(d.StackPointer()), Msg: "a number beyond the range of doubles, or with over 64 characters: send a string"}
		}
		if isValue(d, token.Kind()) {
			values--
		}
		if values < 0 {
			return &InputError{Code: CodeTooLarge, Msg: "more values than a request may have: send fewer messages, the server has the others"}
		}
	}
}

// isValue reports whether the token that d has read begins a value: it is not the end of one, nor the name of a member.
func isValue(d *jsontext.Decoder, kind jsontext.Kind) bool {
	if kind == jsontext.KindEndObject || kind == jsontext.KindEndArray {
		return false
	}
	in, length := d.StackIndex(d.StackDepth())
	return kind != jsontext.KindString || in != jsontext.KindBeginObject || length%2 == 0
}

// readable reports whether other readers take a number as the same number.
func readable(number string) bool {
	if len(number) > maxDigits {
		return false
	}
	_, err := strconv.ParseFloat(number, 64)
	return err == nil
}

// syntaxError names the place of what is not JSON, without any of it.
func syntaxError(err error) error {
	e := &InputError{Code: CodeBadJSON, Msg: "not JSON: send one document in UTF-8"}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return e
	}
	e.Field = fieldOf(syntax.JSONPointer)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Msg = "the same name twice in an object: send it once"
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Msg = "the document ends too early: send all of it"
	default:
		e.Msg = fmt.Sprintf("not JSON at byte %d: send one document in UTF-8", syntax.ByteOffset)
	}
	return e
}
