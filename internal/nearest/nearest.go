// Package nearest finds the known name that a misspelt one was probably meant to be, for hints such
// as `did you mean "effect"?`.
//
// How far a guess may go is the caller's [Rule]: a wrong guess costs a person at a command line
// nothing, but misleads a language model that reads where its output is wrong.
package nearest

// The bounds of a search, for words that come from outside: about a million steps.
const (
	longest = 64  // bytes of a word or candidate; longer ones are not compared
	most    = 200 // candidates compared, the first ones
)

// Rule is when a candidate is near enough to a word to be what was meant.
type Rule struct {
	// Fold drops differences that do not count, for example case. Nil compares words as written.
	Fold func(word string) string

	// Edits is how many edits may lie between a word and a candidate, both given as written.
	Edits func(word, candidate string) int
}

// Of returns the candidate that is the fewest edits away from word, "" if the rule finds none
// near enough. Of equally near ones the first wins, and a word is nearest to itself. An edit
// inserts, deletes or replaces a byte, or swaps two neighbours.
func Of(word string, candidates []string, rule Rule) string {
	if word == "" || len(word) > longest {
		return ""
	}
	fold := rule.Fold
	if fold == nil {
		fold = func(s string) string { return s }
	}
	folded := fold(word)
	best, fewest := "", 2*longest
	for _, candidate := range candidates[:min(len(candidates), most)] {
		if candidate == "" || len(candidate) > longest {
			continue
		}
		c := fold(candidate)
		if d := edits(folded, c); d < fewest && d <= rule.Edits(word, candidate) {
			best, fewest = candidate, d
		}
	}
	return best
}

// edits counts the edits between two short words, none of them inside another (optimal string
// alignment).
func edits(a, b string) int {
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
