package events_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestErrorsCompareByCodeThroughAnyWrapping(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("outer: %w", &events.Error{Code: events.CodeTimeout, Op: "invoke greet", Msg: "took over 30s", Err: io.EOF})
	require.ErrorIs(t, err, events.ErrTimeout)
	require.ErrorIs(t, err, io.EOF)
	require.NotErrorIs(t, err, events.ErrToolError)
	require.Equal(t, events.CodeTimeout, events.CodeOf(err))
	require.Equal(t, "outer: invoke greet: timeout: took over 30s: EOF", err.Error())
	require.Empty(t, events.CodeOf(errors.New("other")))
	require.Empty(t, events.CodeOf(nil))
}

func TestOnlyCodesOfTheContractAreKnown(t *testing.T) {
	t.Parallel()
	require.True(t, events.CodeStateCorrupt.Known())
	require.True(t, events.CodeBadArgs.Known())
	for _, c := range []events.Code{"", "my_own", "Timeout", "timeout "} {
		require.False(t, c.Known(), c)
	}
}

func TestClippedTextIsShortAndWholeCharacters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", events.Clip("short"))
	whole := strings.Repeat("x", events.MaxText)
	require.Equal(t, whole, events.Clip(whole))
	for _, long := range []string{whole + "x", "x" + strings.Repeat("é", events.MaxText), strings.Repeat("\x80", 2*events.MaxText)} {
		clipped := events.Clip(long)
		require.LessOrEqual(t, len(clipped), events.MaxText)
		require.True(t, strings.HasSuffix(clipped, "…"))
		require.True(t, utf8.ValidString(clipped))
	}
}
