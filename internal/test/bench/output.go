package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// output is where a report goes besides the table: as JSON, and into a document.
type output struct{ json, document string }

func (o *output) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.json, "json", "", "file for all figures as JSON")
	fs.StringVar(&o.document, "write", "", "document whose table is replaced by this one: docs/notes/performance-diary.md")
}

// command is how a run can be made again elsewhere: without the names of files.
func command(program string, fs *flag.FlagSet) string {
	fs.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"store", "json", "write"}, f.Name) {
			program += " -" + f.Name + "=" + f.Value.String()
		}
	})
	return program
}

// written is a report.
type written interface {
	table(w io.Writer) error
	// section names the place in the document, and the command that makes the table again.
	section() (name, command string)
}

func (o *output) write(r written, out io.Writer) error {
	if o.json != "" {
		if err := writeJSON(o.json, r); err != nil {
			return err
		}
	}
	var table bytes.Buffer
	if err := r.table(&table); err != nil {
		return err
	}
	if o.document != "" {
		name, command := r.section()
		if err := replace(o.document, name, command, table.String()); err != nil {
			return err
		}
	}
	if _, err := out.Write(table.Bytes()); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// tierLine returns the line of a table's header that describes the tier, wrapped to the width of a document.
func tierLine(name, text string) string {
	return "tier      " + name + " (" + strings.ReplaceAll(text, "; ", ";\n          ") + ")\n"
}

// replace writes a table between the two markers of its section.
func replace(file, name, command, table string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->\n"
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("document %s: want a line %q and, below it, a line %q", file, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	text := before + begin + "`" + command + "`:\n\n```text\n" + table + "```\n" + end + after
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // a document is public
		return fmt.Errorf("write the document: %w", err)
	}
	return nil
}

func writeJSON(file string, r any) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
