package outbound

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// The errors of bodies that are not read to their end.
var (
	errTooLarge = errors.New("the answer is too large")
	errEncoding = errors.New("the answer has a Content-Encoding that was not asked for")
)

// body bounds what is read of an answer, after it was inflated. Of a stream of events each one
// is bounded, if the client reads them one by one: such a stream may be open for days.
type body struct {
	io.ReadCloser

	max, left int64
	events    bool
	line      bool  // the line that is being read has had a byte
	err       error // what each read returns from now on
}

func newBody(resp *http.Response, most int64, streams bool) io.ReadCloser {
	b := &body{ReadCloser: resp.Body, max: most, left: most, events: streams && EventStream(resp)}
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.ContentLength > most && !b.events:
		b.err = tooLarge(most)
	case encoding != "" && !strings.EqualFold(encoding, "identity"): // gzip that was asked for is undone
		b.err = errEncoding
	}
	return b
}

// EventStream reports whether an answer is a stream of server-sent events.
func EventStream(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

func tooLarge(most int64) error { return fmt.Errorf("%w: the limit is %d bytes", errTooLarge, most) }

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 { // one more distinguishes the limit from the end
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if within := b.count(p[:n]); within < n {
		b.err = tooLarge(b.max)
		return within, b.err
	}
	return n, err //nolint:wrapcheck // a reader passes io.EOF and the errors of what it reads on
}

// count returns how many bytes are within the bound. In a stream it starts again at each empty
// line, which ends an event.
func (b *body) count(data []byte) int {
	if !b.events {
		within := min(int64(len(data)), b.left)
		b.left -= within
		return int(within)
	}
	for i, c := range data {
		if b.left == 0 {
			return i
		}
		b.left--
		switch {
		case c == '\n' && !b.line:
			b.left = b.max
		case c != '\r':
			b.line = c != '\n'
		}
	}
	return len(data)
}
