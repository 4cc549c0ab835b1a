package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// listed writes items as line:body or line:!error.
func listed(r io.Reader) []string {
	var all []string
	for it := range split(r) {
		if it.err != nil {
			all = append(all, fmt.Sprintf("%d:!%v", it.line, it.err))
		} else {
			all = append(all, fmt.Sprintf("%d:%s", it.line, it.body))
		}
	}
	return all
}

func TestInputIsSplitIntoEventsWithTheirLines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":              {"", nil},
		"blank lines":          {"\n \n\t\n", nil},
		"lines":                {"{\"a\":1}\n\n {\"b\":2} \r\n{\"c\":3}", []string{`1:{"a":1}`, `3:{"b":2}`, `4:{"c":3}`}},
		"byte order mark":      {"\ufeff{\"a\":1}\n{\"b\":2}", []string{`1:{"a":1}`, `2:{"b":2}`}},
		"one line":             {`{"a":1}`, []string{`1:{"a":1}`}},
		"bad line":             {"{\"a\":1}\nno JSON\n{\"c\":3}\n", []string{`1:{"a":1}`, `2:no JSON`, `3:{"c":3}`}},
		"bad first line":       {"no JSON\n{\"c\":3}\n", []string{`1:no JSON`, `2:{"c":3}`}},
		"first line cut off":   {"{\"a\":\n{\"b\":2}\n", []string{`1:{"a":`, `2:{"b":2}`}},
		"object over lines":    {"\n{\n \"a\": 1\n}\n", []string{"2:{\n \"a\": 1\n}"}},
		"objects over lines":   {"{\n\"a\":1}\n{\"b\":2}\n\n{\n}", []string{"1:{\n\"a\":1}", `3:{"b":2}`, "5:{\n}"}},
		"broken second object": {"{\n\"a\":1}\n{\n\"b\" 2}", []string{"1:{\n\"a\":1}", "4:!invalid JSON, the rest was not read: invalid character '2' after object key"}},
		"broken only object":   {"{\n\"a\" 1}", []string{"2:!invalid JSON, the rest was not read: invalid character '1' after object key"}},
		"array":                {"[{\"a\":1},\n {\"b\":2},\n\n 3]\n", []string{`1:{"a":1}`, `2:{"b":2}`, `4:3`}},
		"array in one line":    {`[{"a":1},{"b":2}]`, []string{`1:{"a":1}`, `1:{"b":2}`}},
		"empty array":          {"[]", nil},
		"open array":           {"[1", []string{"1:1", "1:!invalid JSON, the rest was not read: unexpected EOF"}},
		"more after an array":  {"[1]\n2", []string{"1:1", "2:!invalid JSON, the rest was not read: unexpected data after the array"}},
		"broken array":         {"[1,\n}", []string{"1:1", "2:!invalid JSON, the rest was not read: invalid character '}' looking for beginning of value"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, listed(strings.NewReader(tc.in)))
			require.Equal(t, tc.want, listed(iotest.OneByteReader(strings.NewReader(tc.in))))
		})
	}
}

func TestLineThatIsTooLongIsReportedAndTheNextOnesContinue(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("x"), maxEvent)
	in := io.MultiReader(strings.NewReader("1\n"), bytes.NewReader(long), strings.NewReader("x\n3\n"))
	require.Equal(t, []string{"1:1", "2:!the line is longer than 64 MiB", "3:3"}, listed(in))
}

func TestIncompleteInputIsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	for _, text := range []string{"1\n", "[1,\n"} {
		got := listed(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)))
		require.Contains(t, got[len(got)-1], "disk on fire")
	}
}

func TestReadingStopsWhenTheReaderStops(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"1\n2\n", "[1,2]", "{\n}{\n}"} {
		for range split(strings.NewReader(in)) {
			break
		}
	}
}

func FuzzSplitTakesAnyInput(f *testing.F) {
	for _, seed := range []string{"", "{}\n{}", "[{},{}]", "{\n}\n{", "[", "{\n{}", "[1]2"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		last, most := 0, bytes.Count(in, []byte("\n"))+1
		for it := range split(bytes.NewReader(in)) {
			if it.line < last || it.line > most || it.line < 1 {
				t.Fatalf("line %d after %d of %d", it.line, last, most)
			}
			last = it.line
			if it.err == nil && len(it.body) == 0 {
				t.Fatal("an event without bytes")
			}
		}
	})
}
