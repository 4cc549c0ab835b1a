package bindings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/nearest"
)

const (
	longestName   = 64  // of names that are shown in messages
	mostListed    = 10  // names in one message
	mostSuggested = 200 // candidates that are sorted and compared with a word
)

// closest returns the candidate that is at most a third of its letters away from word, or "".
// Of equally close ones the first in alphabetical order wins.
func closest(word string, candidates []string) string {
	candidates = slices.Sorted(slices.Values(candidates[:min(len(candidates), mostSuggested)]))
	return nearest.Of(word, candidates, nearest.Rule{
		Fold:  strings.ToLower,
		Edits: func(_, candidate string) int { return max(1, len(candidate)/3) },
	})
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

// thereOr returns a suggestion, else how to make what is missing, and what there is if that is not too
// much to read.
func thereOr(word string, known []string, create string) string {
	switch s := suggestion(word, known); {
	case s != "":
		return s
	case len(known) == 0 || len(known) > mostListed:
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

// listed joins at most ten names in alphabetical order.
func listed(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	if len(sorted) <= mostListed {
		return strings.Join(sorted, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(sorted[:mostListed], ", "), len(sorted)-mostListed)
}

// quoted shows a name that came from outside: quoted and cut.
func quoted(name string) string {
	if len(name) > longestName {
		return fmt.Sprintf("%q…", name[:longestName])
	}
	return fmt.Sprintf("%q", name)
}
