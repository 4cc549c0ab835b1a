package sweep

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

// FuzzDecodePage: whatever is read names turns, and no filter that matches others.
func FuzzDecodePage(f *testing.F) {
	f.Add([]byte(`{"known":2,"turns":[{"key":"a.c.0-t.0","seq":1}]}`))
	f.Add([]byte(`{"turns":[{"key":"a.*.0-t.0","seq":18446744073709551615,"held":1,"stream":"S"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := decodePage(data)
		if err != nil {
			return
		}
		for _, o := range page.Turns {
			require.NotContains(t, o.Key, "*")
			require.NotContains(t, o.Key, ">")
		}
	})
}

func TestNewsThatAreTooManyHaveEveryTurnRead(t *testing.T) {
	t.Parallel()
	n := newUpdates()
	key := func(i int) subjects.Key { return subjects.TurnKey("app", strconv.Itoa(i), "", "turn") }
	for i := range maxUpdates {
		n.add(key(i), uint64(i), false)
	}
	require.True(t, n.of(key(-1).String(), 0).nothing)
	n.add(key(1), maxUpdates, true)
	n.add(key(1), maxUpdates+1, false)
	require.Equal(t, sinceThen{ended: true, all: true, newest: maxUpdates + 1}, n.of(key(1).String(), 0))
	n.add(key(maxUpdates), maxUpdates+2, true)
	require.Equal(t, sinceThen{}, n.of(key(maxUpdates).String(), 0))
	require.Equal(t, sinceThen{}, n.of(key(-1).String(), 0))
	require.Len(t, n.turns, maxUpdates)
}
