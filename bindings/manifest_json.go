package bindings

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON manifests are read token by token, so that each value has its line and duplicate keys are found.

// jsonReader walks the tokens of a JSON text and knows the line it is on.
type jsonReader struct {
	*parser

	data []byte
	dec  *jsontext.Decoder
	at   int64 // offset up to which lines are counted
	line int
}

func (p *parser) json(data []byte) (*node, error) {
	r := &jsonReader{parser: p, data: data, line: 1}
	r.dec = jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	n, err := r.read(0)
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) == 0 {
		return nil, nil //nolint:nilnil // an empty manifest is an absent one
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, &parseError{r.here(), "text after the end of the JSON value"}
	}
	return n, nil
}

// here counts lines up to the last token.
func (r *jsonReader) here() int {
	offset := min(r.dec.InputOffset(), int64(len(r.data)))
	r.line += bytes.Count(r.data[r.at:offset], []byte{'\n'})
	r.at = offset
	return r.line
}

func (r *jsonReader) token() (jsontext.Token, error) {
	tok, err := r.dec.ReadToken()
	if err == nil || (errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)) {
		return tok, err //nolint:wrapcheck // io.EOF is compared by the caller
	}
	line, reason := r.here(), "not JSON"
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if end := min(syntax.ByteOffset, int64(len(r.data))); end >= 0 {
			line = 1 + bytes.Count(r.data[:end], []byte{'\n'})
		}
		reason = "not JSON: " + syntax.Err.Error()
	}
	return tok, &parseError{line, reason}
}

func (r *jsonReader) read(depth int) (*node, error) {
	tok, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &node{line: r.here()}
	if err := r.enter(n.line, depth); err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
	case 't', 'f':
		n.kind, n.text = boolNode, tok.String()
	case '"':
		n.kind, n.text = textNode, tok.String()
	case '0':
		n.kind, n.text = numberNode, tok.String()
		if !number(n.text) {
			return nil, &parseError{n.line, "number out of bounds: " + quoted(n.text)}
		}
	case '[':
		n.kind = listNode
		return n, r.list(n, depth)
	case '{':
		n.kind = mapNode
		return n, r.object(n, depth)
	default: // the decoder gives no other token at the start of a value
	}
	return n, nil
}

func (r *jsonReader) list(n *node, depth int) error {
	for r.dec.PeekKind() != ']' {
		item, err := r.read(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := r.token()
	return err
}

func (r *jsonReader) object(n *node, depth int) error {
	for r.dec.PeekKind() != '}' {
		key, err := r.token()
		if err != nil {
			return err
		}
		name, line := key.String(), r.here()
		v, err := r.read(depth + 1)
		if err != nil {
			return err
		}
		v.line = line
		r.set(n, name, line, v)
	}
	_, err := r.token()
	return err
}
