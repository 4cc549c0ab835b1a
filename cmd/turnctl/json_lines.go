package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// maxLine bounds a line of --jsonl in bytes: a text of the largest size all of whose characters are escaped, and a schema.
const maxLine = 8 << 20

// eachLine calls do for each line of standard input that is not empty, with its number from 1, and writes the result as
// one line. Of a line that is too long, whole is false. Results are written immediately if no further line has arrived,
// so that another program can wait for them.
func (a *app) eachLine(command string, do func(line []byte, n int, whole bool) any) error {
	in := bufio.NewReaderSize(a.stdin, 1<<16)
	var out bytes.Buffer
	for n := 1; ; n++ {
		line, whole, err := readLine(in)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return fmt.Errorf("%s: read line %d of standard input: %w", command, n, err)
		}
		if !whole || len(bytes.TrimSpace(line)) > 0 {
			if err := cli.WriteJSON(&out, do(line, n, whole), ""); err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
		}
		const enough = 1 << 16
		if ended || out.Len() > enough || in.Buffered() == 0 {
			if _, err := out.WriteTo(a.stdout); err != nil {
				return fmt.Errorf("%s: write the output: %w", command, err)
			}
		}
		if ended {
			return nil
		}
	}
}

// readLine reads a line. Of one that is too long, the rest is passed and whole is false. The error is the one of the
// reader, and the line may be the last one.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			whole = false
		}
		if whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err //nolint:wrapcheck // the caller adds the line
		}
	}
}
