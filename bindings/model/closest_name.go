package model

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oneturn/oneturn/internal/nearest"
)

// maxShown is the longest key, in bytes, that is shown in a violation.
const maxShown = 64

// closestName returns the candidate that word most likely is a misspelling of, "" if none is close:
// a third of its Plain may differ.
func closestName(word string, candidates []string) string {
	return nearest.Of(word, candidates, nearest.Rule{
		Fold:  Plain,
		Edits: func(word, _ string) int { return len(Plain(word)) / 3 },
	})
}

// printable returns key if it is short and safe to show, else "*".
func printable(key string) string {
	if key == "" || len(key) > maxShown || !utf8.ValidString(key) ||
		strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "*"
	}
	return key
}

// pathToken escapes one step of a JSON pointer.
func pathToken(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
