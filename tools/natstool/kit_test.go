package natstool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func eventually(t *testing.T, is func() bool, what string) {
	t.Helper()
	require.Eventually(t, is, 20*time.Second, 5*time.Millisecond, what)
}
