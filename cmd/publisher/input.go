package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Bounds of the input. A server accepts 1 MiB per message by default, at most 64 MiB.
const (
	maxEvent    = 64 << 20 // bytes of one event
	maxDocument = 256 << 20
)

// byteOrderMark begins files that some programs of Windows write.
const byteOrderMark = "\ufeff"

// item is one event of an input, as it is written there, or what is wrong with it.
type item struct {
	line int // where it begins, from 1
	body []byte
	err  error
}

// split takes an input apart: one JSON object a line, or else a JSON array of objects, or objects
// that span lines. Lines are read one by one, so that the input may be as long as one likes
// and need not end; a document is read whole. What the objects hold is not looked at.
func split(r io.Reader) iter.Seq[item] {
	return func(yield func(item) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark { // an error comes again with the next read
			_, _ = in.Discard(len(mark)) // it is in the buffer
		}
		first := firstLine(in)
		switch {
		case first.err != nil && errors.Is(first.err, io.EOF) && len(first.body) == 0:
		case first.err == nil && spansLines(first.body):
			document(first, in, yield)
		default:
			lines(first, in, yield)
		}
	}
}

// firstLine reads up to the first line that is not blank.
func firstLine(in *bufio.Reader) item {
	for n := 1; ; n++ {
		body, err := readLine(in)
		if err != nil || len(bytes.TrimSpace(body)) > 0 {
			return item{n, body, err}
		}
	}
}

// spansLines reports whether a line is the beginning of a longer document.
func spansLines(line []byte) bool {
	line = bytes.TrimSpace(line)
	if line[0] == '[' {
		return true
	}
	var v json.RawMessage
	return line[0] == '{' && errors.Is(json.NewDecoder(bytes.NewReader(line)).Decode(&v), io.ErrUnexpectedEOF)
}

// lines yields one event a line, beginning with a line that was read already.
func lines(first item, in *bufio.Reader, yield func(item) bool) {
	for it := first; ; {
		if it.err != nil && !errors.Is(it.err, errLongLine) {
			if !errors.Is(it.err, io.EOF) {
				yield(it)
			}
			return
		}
		if it.body = bytes.TrimSpace(it.body); (len(it.body) > 0 || it.err != nil) && !yield(it) {
			return
		}
		it.line++
		it.body, it.err = readLine(in)
	}
}

var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxEvent>>20)

// readLine reads a line without its end. A line that is too long is skipped.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxEvent; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long:
			return nil, errLongLine
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read input: %w", err)
		default:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		}
	}
}

// document yields the elements of an array, or objects that follow each other.
func document(first item, in *bufio.Reader, yield func(item) bool) {
	rest, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		yield(item{line: first.line, err: err})
		return
	case len(rest) > maxDocument:
		yield(item{line: first.line, err: fmt.Errorf("the document is longer than %d MiB: write one event a line", maxDocument>>20)})
		return
	}
	whole := bytes.TrimRight(append(append(first.body, '\n'), rest...), " \t\r\n")
	d := &documents{whole: whole, line: first.line, in: json.NewDecoder(bytes.NewReader(whole))}
	if bytes.TrimSpace(first.body)[0] == '[' {
		d.array(yield)
		return
	}
	it := d.next()
	if it.err != nil && json.Valid(nextLine(rest)) { // a line that was cut off, not a document
		lines(first, bufio.NewReaderSize(bytes.NewReader(rest), 64<<10), yield)
		return
	}
	for ; ; it = d.next() {
		if errors.Is(it.err, io.EOF) || !yield(it) || it.err != nil {
			return
		}
	}
}

// array yields the elements of the array that the document is.
func (d *documents) array(yield func(item) bool) {
	if _, err := d.in.Token(); err != nil {
		yield(d.broken(err))
		return
	}
	for d.in.More() {
		it := d.next()
		if errors.Is(it.err, io.EOF) {
			it = d.broken(io.ErrUnexpectedEOF)
		}
		if !yield(it) || it.err != nil {
			return
		}
	}
	_, err := d.in.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		if _, err = d.in.Token(); errors.Is(err, io.EOF) {
			return
		}
		err = errors.New("unexpected data after the array")
	}
	yield(d.broken(err))
}

func nextLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// documents reads JSON values with the line on which each begins.
type documents struct {
	whole []byte
	in    *json.Decoder
	at    int // offset up to which lines are counted
	line  int // line of at
}

func (d *documents) next() item {
	var body json.RawMessage
	if err := d.in.Decode(&body); err != nil {
		return d.broken(err)
	}
	return item{line: d.lineOf(int(d.in.InputOffset()) - len(body)), body: body}
}

// broken is the error item for the place where the document cannot be read further.
func (d *documents) broken(err error) item {
	if errors.Is(err, io.EOF) {
		return item{err: err}
	}
	at := int(d.in.InputOffset())
	at += len(d.whole[at:]) - len(bytes.TrimLeft(d.whole[at:], ", \t\r\n"))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) { // its offset is sometimes relative to the value
		at = max(at, int(syntax.Offset))
	}
	return item{line: d.lineOf(at), err: fmt.Errorf("invalid JSON, the rest was not read: %w", err)}
}

func (d *documents) lineOf(offset int) int {
	offset = min(max(offset, d.at), len(d.whole))
	d.line += bytes.Count(d.whole[d.at:offset], []byte("\n"))
	d.at = offset
	return d.line
}
