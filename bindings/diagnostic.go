package bindings

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Severity says how bad a [Diagnostic] is.
type Severity string

// Severities of diagnostics.
const (
	SeverityError   Severity = "error"   // something of the workflow does not work
	SeverityWarning Severity = "warning" // works, but probably not as its author thinks
	SeverityInfo    Severity = "info"    // worth knowing
)

// Diagnostic is one finding about a manifest.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Workflow string   `json:"workflow"`       // "" if it concerns the whole folder
	File     string   `json:"file,omitempty"` // relative to the root, slash-separated
	Line     int      `json:"line,omitempty"` // 1 is the first; 0 when no line is to blame
	Code     string   `json:"code"`           // stable name of the kind of finding
	Message  string   `json:"message"`
	Mend     string   `json:"mend,omitempty"` // what to do about it
}

// String gives the diagnostic as one line: file:line: severity: message (mend).
func (d Diagnostic) String() string {
	var b strings.Builder
	if at := (place{d.File, d.Line}).String(); at != "" {
		b.WriteString(at + ": ")
	}
	fmt.Fprintf(&b, "%s: %s [%s]", d.Severity, d.Message, d.Code)
	if d.Mend != "" {
		b.WriteString(": " + d.Mend)
	}
	return b.String()
}

// same reports whether both say the same, wherever in the file it stands now.
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

// declaredIn begins the file of a place that is Go code.
const declaredIn = "declaration of "

// words picks the mend that has the keys of the place: those of oneturn.yaml, those of
// MozaiksAI's manifests, or Go.
func (p place) words(own, mozaiks, code string) string {
	switch {
	case strings.HasPrefix(p.file, declaredIn):
		return code
	case ours(path.Base(p.file)):
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

// add notes a finding; what was said already is not said again.
func (r *report) add(sev Severity, at place, code, message, mend string) {
	d := Diagnostic{
		Severity: sev, Workflow: r.workflow, File: at.file, Line: at.line,
		Code: code, Message: message, Mend: mend,
	}
	switch {
	case len(r.found) > maxDiagnostics || slices.Contains(r.found, d):
		return
	case len(r.found) == maxDiagnostics:
		d.Severity, d.Code, d.Message = SeverityError, "too_many_diagnostics", "there are more findings than are kept"
		d.Mend = "mend the ones above first"
	}
	r.found = append(r.found, d)
}

// faulty reports whether anything worse than an info was found.
func (r *report) faulty() bool {
	return slices.ContainsFunc(r.found, func(d Diagnostic) bool { return d.Severity != SeverityInfo })
}

func (r *report) errorf(at place, code, mend, format string, args ...any) {
	r.add(SeverityError, at, code, fmt.Sprintf(format, args...), mend)
}

func (r *report) warnf(at place, code, mend, format string, args ...any) {
	r.add(SeverityWarning, at, code, fmt.Sprintf(format, args...), mend)
}

func (r *report) infof(at place, code, mend, format string, args ...any) {
	r.add(SeverityInfo, at, code, fmt.Sprintf(format, args...), mend)
}
