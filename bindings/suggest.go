package bindings

import (
	"fmt"
	"slices"
	"strings"
)

const (
	longestName   = 64  // of names that are compared and shown in messages
	mostSuggested = 200 // candidates that are compared with a word
)

// closest returns the candidate that is at most a third of its letters away from word, or "".
// Of equally close ones the first in alphabetical order wins.
func closest(word string, candidates []string) string {
	if word == "" || len(word) > longestName {
		return ""
	}
	word = strings.ToLower(word)
	best, bestDistance := "", 1<<30
	candidates = slices.Sorted(slices.Values(candidates[:min(len(candidates), mostSuggested)]))
	for _, c := range candidates {
		if c == "" || len(c) > longestName {
			continue
		}
		d := distance(word, strings.ToLower(c))
		if d < bestDistance && d <= max(1, len(c)/3) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// suggestion gives `did you mean "x"?`, or "".
func suggestion(word string, known []string) string {
	if c := closest(word, known); c != "" {
		return fmt.Sprintf("did you mean %q?", c)
	}
	return ""
}

// didYouMean gives a suggestion, else the known names, else "".
func didYouMean(word string, known []string) string {
	if s := suggestion(word, known); s != "" || len(known) == 0 {
		return s
	}
	return "known: " + listed(known)
}

// listed joins at most ten names in alphabetical order.
func listed(names []string) string {
	const most = 10
	sorted := slices.Sorted(slices.Values(names))
	if len(sorted) <= most {
		return strings.Join(sorted, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(sorted[:most], ", "), len(sorted)-most)
}

// quoted shows a name that came from outside: quoted and cut.
func quoted(name string) string {
	if len(name) > longestName {
		return fmt.Sprintf("%q…", name[:longestName])
	}
	return fmt.Sprintf("%q", name)
}
