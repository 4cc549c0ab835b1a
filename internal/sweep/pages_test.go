package sweep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// The worker of the first sweep is paused meanwhile: its lease lapses, and another one sweeps.
func TestSweepWritesOverNoPageThatAnotherSweepHasCommitted(t *testing.T) {
	t.Parallel()
	page := func(turn string) sweep.Page {
		return sweep.Page{Turns: []sweep.OpenTurn{{Key: subjects.TurnKey("app", "chat", "", turn).String(), Seq: 1}}}
	}
	for name, wrote := range map[string]bool{"before its first page": false, "between two pages": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestSweep(t)
			first, second := b.pages(), b.pages()
			state, err := first.State(t.Context())
			require.NoError(t, err)
			n := state.Next
			if wrote {
				require.NoError(t, first.Put(t.Context(), n, page("lost")))
			}
			_, err = second.State(t.Context())
			require.NoError(t, err)
			require.NoError(t, second.Put(t.Context(), n, page("kept")))
			state.Next++
			require.NoError(t, second.Commit(t.Context(), state))
			require.Error(t, first.Put(t.Context(), n, page("lost")))
			require.Error(t, first.Commit(t.Context(), state))
			found, err := second.Page(t.Context(), n)
			require.NoError(t, err)
			require.Equal(t, page("kept"), found)
		})
	}
}

// A worker died before it committed what it had written.
func TestPageThatNoSweepHasCommittedIsWrittenOver(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	dead := b.pages()
	state, err := dead.State(t.Context())
	require.NoError(t, err)
	require.NoError(t, dead.Put(t.Context(), state.Next, sweep.Page{Known: 1}))
	next := b.pages()
	_, err = next.State(t.Context())
	require.NoError(t, err)
	require.NoError(t, next.Put(t.Context(), state.Next, sweep.Page{Known: 2}))
	found, err := next.Page(t.Context(), state.Next)
	require.NoError(t, err)
	require.Equal(t, uint64(2), found.Known)
}
