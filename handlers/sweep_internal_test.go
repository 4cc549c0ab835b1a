package handlers

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

func claims(n int, id string) []openClaim {
	open := make([]openClaim, n)
	for i := range open {
		open[i] = openClaim{key: subjects.TurnKey("app", id, "", strconv.Itoa(i)), seq: uint64(i + 1)}
	}
	return open
}

func TestSweepStateIsBoundedAndTheRestIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, open := range map[string][]openClaim{
		"many": claims(maxCarried+5_000, "c"),
		"long": claims(maxCarried, strings.Repeat("c", 64)),
	} {
		state := SweepState{From: 1 << 40}
		state.carry(open)
		n := len(state.Open)
		require.Positive(t, n, name)
		require.LessOrEqual(t, n, maxCarried, name)
		require.Equal(t, open[n].seq, state.From, name)
		require.Equal(t, open[n-1].seq, state.Open[n-1].Seq, "the oldest are carried")
		data := state.Encode()
		require.LessOrEqual(t, len(data), maxCarriedBytes+100, name)
		again, err := DecodeSweepState(data)
		require.NoError(t, err)
		require.Equal(t, state, again)
		require.Len(t, again.claims(), n)
	}
	state := SweepState{From: 7}
	state.carry(nil)
	require.Equal(t, uint64(7), state.From)
	require.JSONEq(t, `{"from":7}`, string(state.Encode()))
}

func TestPacerKeepsTheRateAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := newPacer(5_000)
		for range 10_000 {
			require.NoError(t, p.wait(t.Context()))
		}
		require.Equal(t, 2*time.Second, time.Since(start))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ErrDraining)
		p = newPacer(1)
		require.ErrorIs(t, p.wait(ctx), ErrDraining)
		p = newPacer(0)
		start = time.Now()
		for range 10_000 {
			require.NoError(t, p.wait(t.Context()))
		}
		require.Zero(t, time.Since(start))
	})
}

func FuzzDecodeSweepState(f *testing.F) {
	f.Add([]byte(`{"from":1,"open":[{"key":"a.c.0-t.0","seq":1}]}`))
	f.Add([]byte(`{"from":18446744073709551615}`))
	f.Add([]byte(`{"from":1,"open":[{"key":"a.*.0-t.0","seq":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeSweepState(data)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(s.Open), maxCarried)
		for key := range s.claims() {
			require.NotContains(t, key.Public("tool_call"), "*")
			require.NotContains(t, key.Public("tool_call"), ">")
			_, ok := subjects.ParseKey(key.Public("tool_call"))
			require.True(t, ok)
		}
	})
}
