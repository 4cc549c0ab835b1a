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

// distance counts insertions, deletions, replacements and swaps of neighbours, in bytes.
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

// thereOr gives a suggestion, else says how to make what is missing, and what is there.
func thereOr(word string, known []string, create string) string {
	switch s := suggestion(word, known); {
	case s != "":
		return s
	case len(known) == 0:
		return create
	default:
		return create + ", or name one that is there: " + listed(known)
	}
}

// together joins names: a, b and c.
func together(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// counted gives "1 error", "2 errors".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
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
