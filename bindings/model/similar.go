package model

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the search for what was meant.
const (
	maxSimilar    = 64  // bytes of a name; longer ones are not compared
	maxCandidates = 200 // names compared
)

// nearest returns the candidate that word most likely is a misspelling of, "" if none is close.
func nearest(word string, candidates []string) string {
	if word == "" || len(word) > maxSimilar {
		return ""
	}
	plain := letters(word)
	best, bestDistance := "", len(plain)/3+1 //nolint:mnd // a third of the letters may differ
	for _, candidate := range candidates[:min(len(candidates), maxCandidates)] {
		if candidate == "" || len(candidate) > maxSimilar || candidate == word {
			continue
		}
		if d := distance(plain, letters(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// letters drops case and everything that is no letter or digit: userName and user_name are near.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// distance counts insertions, deletions, replacements and swaps of neighbours between two
// short strings.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// printable returns key if it is short and safe to show, else "*".
func printable(key string) string {
	if key == "" || len(key) > maxSimilar || !utf8.ValidString(key) ||
		strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "*"
	}
	return key
}

// pathToken escapes one step of a JSON pointer.
func pathToken(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
