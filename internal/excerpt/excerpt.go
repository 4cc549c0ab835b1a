// Package excerpt bounds texts of other systems before they become part of an error, a header or a log line.
package excerpt

import "strings"

// Of returns the beginning of a text, at most so many bytes, as valid UTF-8.
func Of(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// Line is [Of] on one line: control characters are replaced by spaces, several in a row by one, and omitted at the ends.
// A text that was cut ends with "…".
func Line(text string, most int) string {
	line := strings.Join(strings.FieldsFunc(Of(text, most), control), " ")
	if len(text) > most {
		line += "…"
	}
	return line
}

func control(r rune) bool { return r < ' ' || r == 0x7f }
