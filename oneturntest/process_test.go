//go:build unix

package oneturntest_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
)

func TestProcessEndsGentlyWhenAskedAndOtherwiseWithItsError(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, oneturntest.StartProcess(t, "fail").Wait(20*time.Second), "exit status 1")
	require.ErrorContains(t, oneturntest.StartProcess(t, "unknown").Wait(20*time.Second), "exit status 2")
	p := oneturntest.StartProcess(t, "wait")
	p.Pause()
	require.ErrorContains(t, p.Wait(50*time.Millisecond), "has not ended")
	p.Resume()
	p.Kill()
	var exit *exec.ExitError
	require.ErrorAs(t, p.Wait(time.Second), &exit)
}
