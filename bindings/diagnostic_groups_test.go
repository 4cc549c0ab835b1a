package bindings_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

func TestFindingsOfOneCauseAreOneLine(t *testing.T) {
	t.Parallel()
	finding := func(workflow, code, message, file string, line int) bindings.Diagnostic {
		return bindings.Diagnostic{Workflow: workflow, Finding: diag.Finding{
			Severity: diag.SeverityWarning, Code: code, Message: message, File: file, Line: line, Fix: "write it",
		}}
	}
	causes := bindings.Causes([]bindings.Diagnostic{
		finding("W", "a", "one", "W/t.yaml", 1), finding("W", "b", "alone", "", 0), finding("W", "a", "two", "W/t.yaml", 2), finding("V", "a", "other", "V/t.yaml", 1),
		finding("W", "a", "three", "W/t.yaml", 2), finding("W", "a", "four", "W/t.yaml", 3), finding("W", "a", "five", "W/u.yaml", 9),
		{Workflow: "W", Finding: diag.Finding{Severity: diag.SeverityWarning, Code: "a", Message: "fixed in another way"}},
		finding("W", "b", "alone too", "", 0),
	})
	var got []string
	for i := range causes {
		got = append(got, causes[i].Places(), causes[i].String())
	}
	require.Equal(t, []string{
		"W/t.yaml:1, :2, :3 and 1 more", "W/t.yaml:1: warning: one [a]: write it (and 4 more like this: W/t.yaml:2, :3, W/u.yaml:9)",
		"", "warning: alone [b]: write it",
		"V/t.yaml:1", "V/t.yaml:1: warning: other [a]: write it",
		"", "warning: fixed in another way [a]",
		"", "warning: alone too [b]: write it",
	}, got)
	require.Empty(t, bindings.Causes(nil))
}
