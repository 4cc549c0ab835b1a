package diag_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
)

func TestErrorHasALineForEachFinding(t *testing.T) {
	t.Parallel()
	err := error(&diag.Error{Op: "configuration", Findings: []diag.Finding{
		{Field: "--slots", Message: "0 is not positive", Fix: "try --slots=1"}, {Message: "no file"},
	}})
	require.EqualError(t, err, "configuration: --slots: 0 is not positive; try --slots=1\nconfiguration: no file")
	first, ok := diag.Of(fmt.Errorf("worker: %w", err))
	require.True(t, ok)
	require.Equal(t, "try --slots=1", first.Fix)
	_, ok = diag.Of(errors.New("other"))
	require.False(t, ok)
}

func ExampleFinding() {
	fmt.Println(diag.Finding{
		Severity: diag.SeverityError, File: "W/tools.yaml", Line: 3, Code: "bad_effect", Message: "effect is safe", Fix: "write for example effect: keyed",
	})
	// Output: W/tools.yaml:3: error: effect is safe [bad_effect]: write for example effect: keyed
}
