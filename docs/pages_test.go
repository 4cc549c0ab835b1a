package docs_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is a fenced block of a page.
type block struct {
	lang string
	text string
	line int // of its first line, from 1
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// blocks returns the fenced blocks of a page in order.
func blocks(t *testing.T, name string) []block {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	var found []block
	for _, m := range fence.FindAllStringSubmatchIndex(string(data), -1) {
		line := 2
		for _, c := range data[:m[0]] {
			if c == '\n' {
				line++
			}
		}
		found = append(found, block{string(data[m[2]:m[3]]), string(data[m[4]:m[5]]), line})
	}
	return found
}

// fenced returns the blocks of one language.
func fenced(t *testing.T, name, lang string) []block {
	t.Helper()
	var found []block
	for _, b := range blocks(t, name) {
		if b.lang == lang {
			found = append(found, b)
		}
	}
	return found
}
