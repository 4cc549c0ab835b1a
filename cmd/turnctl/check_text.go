package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings"
)

// text prints the report for people. Files are named as in JSON: relative to the checked
// folder.
func (r *report) text(w io.Writer) {
	count := 0
	for _, d := range r.Diagnostics {
		diagnosticText(w, d)
	}
	if len(r.Diagnostics) > 0 {
		fmt.Fprintln(w)
	}
	if len(r.Shared) > 0 {
		fmt.Fprintf(w, "tools for all workflows  (%s)\n", plural(len(r.Shared), "tool"))
		bindingsText(w, r.Shared)
		fmt.Fprintln(w)
	}
	for _, wf := range r.Workflows {
		count += len(wf.Bindings)
		fmt.Fprintf(w, "%s  (%s, digest %s)\n", id(wf.Name), plural(len(wf.Bindings), "binding"), wf.Digest)
		bindingsText(w, wf.Bindings)
		for _, d := range wf.Diagnostics {
			diagnosticText(w, d)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s, %s: %s, %s\n", plural(len(r.Workflows), "workflow"), plural(count, "binding"),
		plural(r.Errors, "error"), plural(r.Warnings, "warning"))
}

// bindingsText prints what binds to what: agent and model in columns, how the tool runs below.
func bindingsText(w io.Writer, all []bindingReport) {
	var columns strings.Builder
	rows := make([][]string, len(all))
	for i, b := range all {
		rows[i] = []string{id(b.Agent), id(b.Model), "→ " + id(b.Tool), b.Where.Text}
	}
	table(&columns, 2, rows)
	lines := strings.Split(columns.String(), "\n")
	for i, b := range all {
		fmt.Fprintln(w, lines[i])
		fmt.Fprintln(w, wrap(b.how(), 6))
	}
}

// how says by which rules the tool runs.
func (b *bindingReport) how() string {
	parts := []string{fmt.Sprintf("effect %s: %s", b.Effect, clean(b.EffectWhy, 200))}
	timeout := "the worker's timeout"
	if b.TimeoutMS > 0 {
		timeout = "timeout " + (time.Duration(b.TimeoutMS) * time.Millisecond).String()
	}
	parts = append(parts, plural(b.MaxAttempts, "attempt"), timeout)
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

// diagnosticText prints severity, place and code on one line, what to know and do below.
func diagnosticText(w io.Writer, d bindings.Diagnostic) {
	where := ""
	if d.File != "" {
		where = clean(d.File, 300)
		if d.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, d.Line)
		}
		where += "  "
	}
	fmt.Fprintf(w, "  %-7s  %s%s\n", d.Severity, where, d.Code)
	fmt.Fprintln(w, wrap(clean(d.Message, 1000), 6))
	if d.Mend != "" {
		fmt.Fprintln(w, wrap("mend: "+clean(d.Mend, 1000), 6))
	}
}
