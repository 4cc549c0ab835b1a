package bindings

import (
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// Cause is the findings of one workflow with the same severity, code and fix: what people read instead
// of a dozen lines that are the same but for a name. A finding without a file stands alone: it is about
// something elsewhere, and its message names what.
type Cause struct {
	Diagnostic // the first one

	More []Diagnostic // the others, in their order
}

// Causes groups findings by their causes, in the order of the first finding of each.
func Causes(found []Diagnostic) []Cause {
	type cause struct {
		severity            diag.Severity
		workflow, code, fix string
	}
	var all []Cause
	at := map[cause]int{}
	for _, d := range found {
		c := cause{d.Severity, d.Workflow, d.Code, d.Fix}
		if i, ok := at[c]; ok && d.File != "" {
			all[i].More = append(all[i].More, d)
			continue
		}
		at[c] = len(all)
		all = append(all, Cause{Diagnostic: d})
	}
	return all
}

// Places names where the findings are, the first three, each once and a file only before the first of its
// lines; "" if no file is to blame.
func (c *Cause) Places() string {
	const most = 3
	var shown []string
	seen := map[place]bool{}
	file := ""
	for _, d := range append([]Diagnostic{c.Diagnostic}, c.More...) {
		p := place{d.File, d.Line}
		if p.file == "" || seen[p] { // one file may have several findings in a line
			continue
		}
		seen[p] = true
		text := p.String()
		if p.file == file && p.line > 0 {
			text = text[len(file):]
		}
		if len(shown) < most {
			shown, file = append(shown, text), p.file
		}
	}
	if more := len(seen) - len(shown); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}

// String gives the first finding as one line, and how many more there are like it.
func (c *Cause) String() string {
	if len(c.More) == 0 {
		return c.Diagnostic.String()
	}
	rest := Cause{c.More[0], c.More[1:]}
	return fmt.Sprintf("%s (and %d more like this: %s)", c.Diagnostic, len(c.More), rest.Places())
}
