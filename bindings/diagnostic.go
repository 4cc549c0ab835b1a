package bindings

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// Findings are collected in a report for each workflow while its files are read and bound. A finding is kept once;
// its fix names the keys of the format in which the place is written.

// Diagnostic is one finding about a manifest. With [diag.SeverityError] something of the workflow does
// not work.
type Diagnostic struct {
	Workflow string `json:"workflow"` // "" if it concerns the whole folder
	diag.Finding
}

// finding returns a diagnostic without a line.
func finding(severity diag.Severity, workflow, file, code, fix, format string, args ...any) Diagnostic {
	return Diagnostic{workflow, diag.Finding{Severity: severity, File: file, Code: code, Message: fmt.Sprintf(format, args...), Fix: fix}}
}

// same reports whether both are the same finding, at whichever line of the file.
func (d Diagnostic) same(o Diagnostic) bool {
	return d.Severity == o.Severity && d.Workflow == o.Workflow && d.File == o.File &&
		d.Code == o.Code && d.Message == o.Message
}

// place is a position in a manifest.
type place struct {
	file string // relative to the root
	line int
}

// String gives file:line, or less if less is known.
func (p place) String() string {
	switch {
	case p.file == "":
		return ""
	case p.line == 0:
		return p.file
	default:
		return fmt.Sprintf("%s:%d", p.file, p.line)
	}
}

// fixFor returns the fix with the keys of the file at the place: oneturn.yaml, a manifest of MozaiksAI,
// or Go.
func (p place) fixFor(own, mozaiks, code string) string {
	switch {
	case strings.HasPrefix(p.file, goTool):
		return code
	case isOwnFormat(path.Base(p.file)):
		return own
	default:
		return mozaiks
	}
}

// report collects the diagnostics of one workflow.
type report struct {
	workflow string
	found    []Diagnostic
}

// maxDiagnostics bounds the findings about one workflow.
const maxDiagnostics = 1000

// add appends a finding, unless the report has it already.
func (r *report) add(sev diag.Severity, at place, code, message, fix string) {
	d := Diagnostic{r.workflow, diag.Finding{
		Severity: sev, File: at.file, Line: at.line, Code: code, Message: message, Fix: fix,
	}}
	switch {
	case len(r.found) > maxDiagnostics || slices.Contains(r.found, d):
		return
	case len(r.found) == maxDiagnostics:
		d.Severity, d.Code, d.Message = diag.SeverityError, "too_many_diagnostics", "there are more findings than are kept"
		d.Fix = "fix the ones above first"
	}
	r.found = append(r.found, d)
}

// hasProblems reports whether anything worse than an info was found.
func (r *report) hasProblems() bool {
	return slices.ContainsFunc(r.found, func(d Diagnostic) bool { return d.Severity != diag.SeverityInfo })
}

func (r *report) errorf(at place, code, fix, format string, args ...any) {
	r.add(diag.SeverityError, at, code, fmt.Sprintf(format, args...), fix)
}

func (r *report) warnf(at place, code, fix, format string, args ...any) {
	r.add(diag.SeverityWarning, at, code, fmt.Sprintf(format, args...), fix)
}

func (r *report) infof(at place, code, fix, format string, args ...any) {
	r.add(diag.SeverityInfo, at, code, fmt.Sprintf(format, args...), fix)
}
