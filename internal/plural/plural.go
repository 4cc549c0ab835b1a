// Package plural writes counts in texts for people.
package plural

import "strconv"

// Of gives "1 error", "2 errors".
func Of[N int | uint64](n N, noun string) string {
	text := strconv.FormatUint(uint64(n), 10) + " " + noun
	if n != 1 {
		text += "s"
	}
	return text
}
