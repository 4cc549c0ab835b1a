package cli

import (
	"strings"
	"unicode/utf8"
)

// Width is how many columns text for people takes at most, where it can be broken.
const Width = 100

// Hang breaks text at blanks so that it fits into [Width], each line but the first after indent
// blanks. A longer word is not broken, because paths and commands are copied.
func Hang(text string, indent int) string { return Below(text, indent, Width-indent) }

// Below breaks text at blanks into lines of size runes, all but the first after indent blanks.
func Below(text string, indent, size int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > size:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// Paragraphs rewraps the paragraphs of a text that are wider than [Width]. Indented ones keep their layout.
func Paragraphs(text string) string {
	blocks := strings.Split(text, "\n\n")
	for i, block := range blocks {
		wide, laidOut := false, false
		for line := range strings.SplitSeq(block, "\n") {
			wide = wide || utf8.RuneCountInString(line) > Width
			laidOut = laidOut || strings.HasPrefix(line, " ")
		}
		if wide && !laidOut {
			blocks[i] = Hang(block, 0)
		}
	}
	return strings.Join(blocks, "\n\n")
}
