package tools_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestErrorKeepsWhatIsKnownOfTheEffectOfItsCall(t *testing.T) {
	t.Parallel()
	cause := &events.Error{Code: events.CodeToolError, Msg: "broken"}
	for want, err := range map[events.EffectState]error{
		"": cause, events.EffectHappened: tools.Returned(cause), events.EffectInDoubt: tools.Unknown(cause),
	} {
		wrapped := fmt.Errorf("call: %w", err)
		require.Equal(t, want, tools.EffectState(wrapped))
		require.Equal(t, "call: "+cause.Error(), wrapped.Error(), "the text stays the same")
		require.ErrorIs(t, wrapped, error(cause))
		require.False(t, tools.IsRetryable(wrapped))
	}
	require.NoError(t, tools.Returned(nil))
	require.NoError(t, tools.Unknown(nil))
	require.Empty(t, tools.EffectState(nil))
	require.Empty(t, tools.EffectState(errors.New("broken")))
}
