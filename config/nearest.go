package config

// nearest returns the word of words that word was probably meant to be, or "". A word of
// words is nearest to itself.
func nearest(word string, words []string) string {
	const longest = 40
	if len(word) > longest {
		return ""
	}
	best, bestDistance := "", len(word)/3+2
	for _, w := range words {
		if d := distance(word, w); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or change to get from a to b
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
