package approval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/oneturntest"
)

// TestMain has all tools note what they do in one ledger.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "oneturn-approval-")
	if err == nil {
		err = os.Setenv("STUDIO_LEDGER", filepath.Join(dir, "ledger"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	oneturntest.VerifyNoLeaks(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}
