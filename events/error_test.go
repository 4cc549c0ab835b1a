package events_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

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
