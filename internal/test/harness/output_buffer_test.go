package harness_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
)

func TestOutputIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	var out harness.Output
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() { _, _ = fmt.Fprint(&out, "line\n") })
		_ = out.String()
	}
	writers.Wait()
	require.Equal(t, "line\nline\nline\nline\n", out.String())
}
