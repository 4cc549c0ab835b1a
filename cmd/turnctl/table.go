package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// At a terminal tables fit [cli.Width] columns, and elsewhere, for example in a pipe, each row is one line with all of its
// text. At a terminal the widest of the cells that are not copied are cut first, then the last
// cell of a row continues below itself. Columns that hold what the next command needs (ids, times) stay
// whole, whatever it costs.

const (
	gap       = 2  // blanks between two columns
	narrowest = 8  // a column that is cut keeps so much
	leastLast = 24 // room that the last column gets before it is broken into lines
)

// table writes rows in aligned columns after indent blanks. Whole are the columns that are never cut.
func table(w io.Writer, indent int, rows [][]string, whole ...int) {
	widths := columnsFor(w, rows, indent, whole)
	for _, row := range rows {
		fmt.Fprintln(w, tableRow(row, widths, indent))
	}
}

// tableWithNotes writes rows as table does, and after each what note writes.
func tableWithNotes(w io.Writer, rows [][]string, note func(row int)) {
	widths := columnsFor(w, rows, 0, nil)
	for i, row := range rows {
		fmt.Fprintln(w, tableRow(row, widths, 0))
		note(i)
	}
}

// columnsFor returns the widths of the columns of a table that is written to w.
func columnsFor(w io.Writer, rows [][]string, indent int, whole []int) []int {
	widths := columns(rows)
	if p, ok := w.(*page); !ok || !p.wide {
		shrinkColumns(widths, indent, whole)
	}
	return widths
}

// columns returns the width of the widest cell of each column.
func columns(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	return widths
}

// shrinkColumns narrows the widest columns until the table fits, the last one to leastLast at most.
func shrinkColumns(widths []int, indent int, whole []int) {
	last := len(widths) - 1
	least := func(i int) int {
		if i == last {
			return leastLast
		}
		return narrowest
	}
	total := indent - gap
	for _, n := range widths {
		total += n + gap
	}
	for ; total > cli.Width; total-- {
		widest := -1
		for i, n := range widths {
			if n > least(i) && !slices.Contains(whole, i) && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// tableRow is one row; the last cell may take more than one line.
func tableRow(row []string, widths []int, indent int) string {
	line := strings.Repeat(" ", indent)
	for i, text := range row {
		if i == len(widths)-1 {
			return strings.TrimRight(line+cli.Below(text, utf8.RuneCountInString(line), widths[i]), " ")
		}
		text = shorten(text, widths[i])
		line += text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+gap)
	}
	return strings.TrimRight(line, " ")
}

// shorten cuts text to n runes; the last one is then an ellipsis.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
