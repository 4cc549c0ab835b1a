package natstool

import (
	"cmp"
	"strconv"
	"strings"
)

// compareVersions compares semantic versions: negative if a is older. A part that is not a number counts as
// zero, and a version with a suffix (1.2.0-rc.1) is older than the one without.
func compareVersions(a, b string) int {
	a, suffixA := split(a)
	b, suffixB := split(b)
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := cmp.Compare(number(x), number(y)); c != 0 {
			return c
		}
	}
	switch {
	case suffixA == suffixB:
		return 0
	case suffixA == "":
		return 1
	case suffixB == "":
		return -1
	}
	return strings.Compare(suffixA, suffixB)
}

// split parts a version from its suffix, without the build that comes after a plus.
func split(version string) (numbers, suffix string) {
	version, _, _ = strings.Cut(version, "+")
	numbers, suffix, _ = strings.Cut(version, "-")
	return numbers, suffix
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
