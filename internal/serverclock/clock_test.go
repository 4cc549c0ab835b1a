package serverclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/serverclock"
)

func TestTimeIsTheServersHoweverWrongTheProcessIs(t *testing.T) {
	t.Parallel()
	server := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, skew := range map[string]time.Duration{"exact": 0, "a day ahead": 24 * time.Hour, "hours late": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passed, asked := time.Duration(0), 0
			c := serverclock.New(func(context.Context) (time.Time, error) {
				asked++
				return server.Add(passed), nil
			}, func() time.Time { return server.Add(passed + skew) })
			for _, passed = range []time.Duration{0, 30 * time.Second, 59 * time.Second, time.Hour} {
				now, err := c.Now(t.Context())
				require.NoError(t, err)
				require.True(t, now.Equal(server.Add(passed)), now)
			}
			require.Equal(t, 2, asked)
		})
	}
}

func TestClockRunsOnWhileTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	passed := time.Duration(0)
	down := errors.New("down")
	err := down
	c := serverclock.New(func(context.Context) (time.Time, error) { return server.Add(passed), err }, func() time.Time { return server.Add(passed + time.Hour) })
	_, errNow := c.Now(t.Context())
	require.ErrorIs(t, errNow, down, "nothing is known yet")
	err = nil
	_, errNow = c.Now(t.Context())
	require.NoError(t, errNow)
	err, passed = down, 10*time.Minute
	now, errNow := c.Now(t.Context())
	require.NoError(t, errNow)
	require.True(t, now.Equal(server.Add(passed)))
}

func TestClockOfTheProcessThatWasSetBackIsReadAgain(t *testing.T) {
	t.Parallel()
	server := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	skew := time.Duration(0)
	c := serverclock.New(func(context.Context) (time.Time, error) { return server, nil }, func() time.Time { return server.Add(skew) })
	_, err := c.Now(t.Context())
	require.NoError(t, err)
	skew = -2 * time.Hour
	now, err := c.Now(t.Context())
	require.NoError(t, err)
	require.True(t, now.Equal(server))
}
