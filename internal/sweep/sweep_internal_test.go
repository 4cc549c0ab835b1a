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

func TestTooManyNewRecordsHaveEveryTurnRead(t *testing.T) {
	t.Parallel()
	n := makeNewRecords()
	key := func(i int) subjects.Key { return subjects.TurnKey("app", strconv.Itoa(i), "", "turn") }
	for i := range maxNewRecords {
		n.add(key(i), uint64(i), false)
	}
	require.True(t, n.of(key(-1).String(), 0).nothing)
	n.add(key(1), maxNewRecords, true)
	n.add(key(1), maxNewRecords+1, false)
	require.Equal(t, sinceThen{ended: true, all: true, newest: maxNewRecords + 1}, n.of(key(1).String(), 0))
	n.add(key(maxNewRecords), maxNewRecords+2, true)
	require.Equal(t, sinceThen{}, n.of(key(maxNewRecords).String(), 0))
	require.Equal(t, sinceThen{}, n.of(key(-1).String(), 0))
	require.Len(t, n.turns, maxNewRecords)
}
