package mcptool

// This file reads the bodies of answers on HTTP: JSON, or a stream of server-sent events.

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// watched is the body of an answer, whose messages the session sees before the SDK does.
func (l *httpSession) watched(resp *http.Response, done func()) io.ReadCloser {
	w := &watched{ReadCloser: resp.Body, session: l, most: l.transport.server.o.maxMessage(), done: done}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	w.stream = strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
	return w
}

type watched struct {
	io.ReadCloser

	session *httpSession
	most    int
	stream  bool // of events
	done    func()

	part, data []byte       // of a stream: the line and the event so far; else data is the body
	blind      bool         // something was too large
	raw, out   bytes.Buffer // the event so far; what the SDK may read
	err        error        // what ended the body
}

func (w *watched) Read(p []byte) (int, error) {
	for w.out.Len() == 0 && w.err == nil {
		n, err := w.ReadCloser.Read(p)
		if err != nil && !errors.Is(err, io.EOF) {
			w.session.broke.Store(&err) // the SDK only reports that there is no answer
		}
		w.err = err
		w.take(p[:n])
	}
	if w.out.Len() > 0 {
		return w.out.Read(p) //nolint:wrapcheck // of a buffer
	}
	return 0, w.err
}

// take takes what was read, and passes complete messages in the form that the SDK accepts.
func (w *watched) take(p []byte) {
	if !w.stream {
		if !w.keep(&w.data, p) {
			w.out.Write(p) // the SDK reports that it is too large
		}
		if w.err != nil {
			w.out.Write(w.admitted())
		}
		return
	}
	for len(p) > 0 {
		at := bytes.IndexByte(p, '\n')
		if at < 0 {
			w.keep(&w.part, p)
			w.raw.Write(p)
			break
		}
		w.keep(&w.part, p[:at])
		w.raw.Write(p[:at+1])
		w.event(bytes.TrimSuffix(w.part, []byte("\r")))
		w.part, p = w.part[:0], p[at+1:]
	}
	if w.blind || w.err != nil {
		w.pass()
	}
}

// pass passes what was held of an event unchanged.
func (w *watched) pass() {
	w.out.Write(w.raw.Bytes())
	w.raw.Reset()
}

// admitted is the message that was read, in the form that the SDK accepts.
func (w *watched) admitted() []byte {
	msg := w.session.session.admit(w.data)
	if msg != nil && !w.session.session.saw(msg) {
		w.session.flooded.Store(true)
		w.session.cut()
	}
	return msg
}

// keep reports false for what is too large: then it is passed unchanged.
func (w *watched) keep(to *[]byte, part []byte) bool {
	if w.blind || len(*to)+len(part) > w.most {
		if !w.blind && !w.stream {
			w.out.Write(*to)
			*to = nil
		}
		w.blind = true
		return false
	}
	*to = append(*to, part...)
	return true
}

// event takes a line of a stream; an empty one ends an event.
func (w *watched) event(line []byte) {
	if len(line) == 0 {
		before := bytes.TrimSpace(w.data)
		if len(before) == 0 || w.blind {
			w.pass()
		} else if msg := bytes.TrimSpace(w.admitted()); bytes.Equal(msg, before) {
			w.pass()
		} else {
			w.instead(msg)
		}
		w.data, w.blind = w.data[:0], false
		return
	}
	if data, is := bytes.CutPrefix(line, []byte("data:")); is {
		w.keep(&w.data, append(bytes.TrimPrefix(data, []byte(" ")), '\n'))
	}
}

// instead passes an event with another message: its other fields stay.
func (w *watched) instead(msg []byte) {
	for line := range bytes.Lines(w.raw.Bytes()) {
		if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 && !bytes.HasPrefix(text, []byte("data:")) {
			w.out.Write(line)
		}
	}
	w.raw.Reset()
	if msg != nil {
		w.out.WriteString("data: ")
		w.out.Write(bytes.ReplaceAll(msg, []byte("\n"), []byte(" ")))
		w.out.WriteString("\n")
	}
	w.out.WriteString("\n")
}

func (w *watched) Close() error {
	w.done()
	return w.ReadCloser.Close() //nolint:wrapcheck // of a reader
}
