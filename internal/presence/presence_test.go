package presence_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/presence"
)

var errTest = errors.New("gone")

// F17: see docs/faults.md.
func TestOneCheckThatFindsNothingProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := presence.New("stream S", errTest)
		require.NoError(t, w.Missing("fix it"))
		require.True(t, w.MaybeGone())
		<-time.After(999 * time.Millisecond)
		require.NoError(t, w.Missing("fix it"), "two checks within a second are one")
		require.NoError(t, w.Found(time.Time{}, ""))
		require.False(t, w.MaybeGone())
		<-time.After(time.Hour)
		require.NoError(t, w.Missing("fix it"), "it was there in between")
		<-time.After(time.Second)
		err := w.Missing("fix it")
		require.ErrorIs(t, err, errTest)
		require.EqualError(t, err, "stream S: it does not exist any more: gone: fix it")
		<-w.Gone()
		require.Equal(t, err, w.Found(time.Unix(1, 0), ""), "and stays so")
	})
}

func TestRecreatedObjectIsAnotherOne(t *testing.T) {
	t.Parallel()
	w := presence.New("stream S", errTest)
	require.False(t, w.Known())
	require.NoError(t, w.Found(time.Unix(1, 0), ""))
	require.True(t, w.Known())
	require.NoError(t, w.Found(time.Unix(1, 0), ""))
	require.ErrorIs(t, w.Found(time.Unix(2, 0), "fix it"), errTest)
}
