package deadletter

import "strings"

// maxErrorHeader bounds the text of an error in a header, in bytes.
const maxErrorHeader = 1024

func oneLine(text string) string {
	if len(text) > maxErrorHeader {
		text = text[:maxErrorHeader] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}
