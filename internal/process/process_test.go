package process_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/process"
)

func ExampleEnvironment() {
	worker := []string{"PATH=/bin", "LC_ALL=C", "API_KEY=k", "AWS_SECRET_ACCESS_KEY=s", "ONETURN_NATS_PASSWORD=p"}
	fmt.Println(process.Environment(worker, []string{"API_KEY", "ONETURN_*"}))
	// Output: [PATH=/bin LC_ALL=C API_KEY=k]
}

func TestOutputLogsABoundedPartAndReportsWhatItOmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out process.Output
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logged, nil))
		for i := range 250 {
			out.Line(log, fmt.Sprintf("line %d secret", i), false, func(s string) string { return strings.ReplaceAll(s, "secret", "***") })
		}
		require.Equal(t, 200, strings.Count(logged.String(), "***"))
		require.NotContains(t, logged.String(), "secret")
		<-time.After(time.Second)
		out.Line(log, "after\r", false, nil)
		out.Line(log, "  ", false, nil)
		require.Contains(t, logged.String(), "lines=50")
		require.Equal(t, "after", out.LastLine())
	})
}

func TestReadLineCutsLongLinesAndFindsTheNext(t *testing.T) {
	t.Parallel()
	in := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 50)+"\nnext\n"), 16)
	line, cut, err := process.ReadLine(in)
	require.NoError(t, err)
	require.True(t, cut)
	require.Len(t, line, 16)
	line, cut, err = process.ReadLine(in)
	require.NoError(t, err)
	require.False(t, cut)
	require.Equal(t, "next", line)
}
