package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/plural"
)

// The text of a report: for each workflow its bindings as a table, the rules of each tool below its row, its
// handoff rules as sentences, then the diagnostics. Warnings and infos with the same cause are one entry unless -v is set. Every line fits the width
// where it can be broken.

// text prints the report for people. Files are named as in JSON: relative to the checked
// folder.
func (r *report) text(w io.Writer) {
	count := 0
	r.diagnosticsText(w, r.Diagnostics)
	if len(r.Diagnostics) > 0 {
		fmt.Fprintln(w)
	}
	if len(r.Shared) > 0 {
		fmt.Fprintf(w, "tools for all workflows  (%s)\n", plural.Of(len(r.Shared), "tool"))
		bindingsText(w, r.Shared)
		fmt.Fprintln(w)
	}
	for _, wf := range r.Workflows {
		count += len(wf.Bindings)
		fmt.Fprintf(w, "%s  (%s, digest %s)\n", id(wf.Name), plural.Of(len(wf.Bindings), "binding"), wf.Digest)
		bindingsText(w, wf.Bindings)
		variablesText(w, wf.Variables)
		handoffsText(w, wf.Handoffs, wf.Decider)
		correctionsText(w, wf.Corrections)
		r.diagnosticsText(w, wf.Diagnostics)
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s, %s: %s, %s\n", plural.Of(len(r.Workflows), "workflow"), plural.Of(count, "binding"),
		plural.Of(r.Errors, "error"), plural.Of(r.Warnings, "warning"))
	if r.grouped > 0 {
		fmt.Fprintf(w, "%s not shown: -v lists all\n", plural.Of(r.grouped, "finding"))
	}
}

// bindingsText prints bindings: agent, model, tool and place in columns, how the tool runs below. Places that
// are too long for a column get a separate line, because they are copied and may not be cut.
func bindingsText(w io.Writer, all []bindingReport) {
	lines, fits := bindingRows(all, true)
	if !fits {
		lines, _ = bindingRows(all, false)
	}
	for i, b := range all {
		fmt.Fprintln(w, lines[i])
		if !fits {
			fmt.Fprintln(w, wrap(b.Where.Text, 6))
		}
		fmt.Fprintln(w, wrap(b.how(), 6))
	}
}

// bindingRows returns the rows of the table of bindings, and whether each fits its line.
func bindingRows(all []bindingReport, places bool) (lines []string, fits bool) {
	rows := make([][]string, len(all))
	for i, b := range all {
		if rows[i] = []string{id(b.Agent), id(b.Model), "→ " + id(b.Tool)}; places {
			rows[i] = append(rows[i], b.Where.Text)
		}
	}
	var text strings.Builder
	table(&text, 2, rows)
	lines = strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	wide := func(line string) bool { return utf8.RuneCountInString(line) > cli.Width }
	return lines, len(lines) == len(rows) && !slices.ContainsFunc(lines, wide)
}

// how describes the rules by which the tool runs.
func (b *bindingReport) how() string {
	if b.Program != nil {
		return b.Program.how()
	}
	parts := []string{fmt.Sprintf("effect %s: %s", b.Effect, clean(b.EffectWhy, 200))}
	timeout := "the worker's timeout"
	if b.TimeoutMS > 0 {
		timeout = "timeout " + milli(b.TimeoutMS)
	}
	parts = append(parts, plural.Of(b.MaxAttempts, "attempt"), timeout)
	if b.Component != "" {
		ui := "UI " + id(b.Component)
		if b.Display != "" {
			ui += " " + id(b.Display)
		}
		parts = append(parts, ui)
	}
	for _, flag := range []struct {
		set  bool
		text string
	}{
		{b.Secret, "answers are secret"},
		{b.SignatureUnknown, "signature unknown"},
		{b.RunOnKeyReuse, "a reused turn key runs"},
		{b.CompatSilent, "failures are silent"},
		{b.CompatEvents, "older events too"},
	} {
		if flag.set {
			parts = append(parts, flag.text)
		}
	}
	return strings.Join(parts, "; ")
}

// diagnosticsText prints every error, and every cause of warnings and infos once, or all of them with -v.
func (r *report) diagnosticsText(w io.Writer, found []bindings.Diagnostic) {
	for _, c := range bindings.Causes(found) {
		if c.Severity == diag.SeverityError || r.all {
			for _, d := range append([]bindings.Diagnostic{c.Diagnostic}, c.More...) {
				causeText(w, bindings.Cause{Diagnostic: d})
			}
			continue
		}
		r.grouped += len(c.More)
		causeText(w, c)
	}
}

// causeText prints severity, code and places on one line, message and fix below.
func causeText(w io.Writer, c bindings.Cause) {
	code, more := c.Code, ""
	if n := len(c.More); n > 0 {
		code, more = fmt.Sprintf("%d × %s", n+1, c.Code), fmt.Sprintf(" (and %d more like this)", n)
	}
	where := ""
	if at := c.Places(); at != "" {
		where = clean(at, 900) + "  "
	}
	head := fmt.Sprintf("  %-7s  %s%s", c.Severity, where, code)
	if utf8.RuneCountInString(head) > cli.Width {
		head = fmt.Sprintf("  %-7s  %s", c.Severity, cli.Hang(where+code, 11))
	}
	fmt.Fprintln(w, head)
	fmt.Fprintln(w, wrap(clean(c.Message, 1000)+more, 6))
	if c.Fix != "" {
		fmt.Fprintln(w, wrap("fix: "+clean(c.Fix, 1000), 6))
	}
}
