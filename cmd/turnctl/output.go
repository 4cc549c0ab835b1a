package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/plural"
)

// print writes v as JSON, or as the text that render makes.
func (a *app) print(format string, v any, render func(w io.Writer)) error {
	if format == "json" {
		return cli.WriteJSON(a.stdout, v, "  ")
	}
	text := page{wide: a.wide}
	render(&text)
	if _, err := io.WriteString(a.stdout, text.String()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// page is text for people before it is written.
type page struct {
	strings.Builder

	wide bool // it is not for a terminal: tables are as wide as their cells
}

// printOutcome is print for a command that fails unless its outcome is good.
func (a *app) printOutcome(good bool, format string, v any, render func(w io.Writer)) error {
	if err := a.print(format, v, render); err != nil || good {
		return err
	}
	return cli.ErrReported
}

// clean makes a text from outside safe to print on one line of a terminal: what is not
// printable is escaped, and of a long text only the beginning is shown.
func clean(s string, limit int) string {
	var b strings.Builder
	n := 0
	for i, r := range s {
		if n >= limit {
			b.WriteString("…")
			break
		}
		n++
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// id prints an id from outside, whole, since ids are copied; "-" stands for none.
func id(s string) string {
	if s == "" {
		return "-"
	}
	return clean(s, maxCallID)
}

// wrap breaks text at blanks so that it fits into width, each line after indent blanks. A longer
// word is not broken, because paths and commands are copied.
func wrap(text string, indent int) string {
	lines := cli.Hang(text, indent)
	if lines == "" {
		return ""
	}
	return strings.Repeat(" ", indent) + lines
}

// stamp prints a time in UTC with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// second prints a time in UTC to the second: tables of turns and questions have no room for more.
func second(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// bytesText prints a size with a unit.
func bytesText(n uint64) string {
	const kibi = 1024
	if n < kibi {
		return plural.Of(n, "byte")
	}
	size, units := float64(n)/kibi, []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	for size >= kibi && len(units) > 1 {
		size, units = size/kibi, units[1:]
	}
	return fmt.Sprintf("%.1f %s", size, units[0])
}
