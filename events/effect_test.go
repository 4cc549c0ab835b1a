package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestOnlyAnEffectThatPermitsItIsReenterable(t *testing.T) {
	t.Parallel()
	for _, e := range events.Effects() {
		require.Equal(t, e != events.EffectUnsafe, e.Reenterable(), e)
	}
	require.False(t, events.Effect("").Reenterable())
	require.False(t, events.Effect("newer").Reenterable())
}

func TestStricterEffectWinsAndAnUnknownOneIsAsStrictAsUnsafe(t *testing.T) {
	t.Parallel()
	all := events.Effects()
	for i, strict := range all {
		for _, lax := range all[i:] {
			require.Equal(t, strict, strict.Stricter(lax))
			require.Equal(t, strict, lax.Stricter(strict))
		}
		require.Equal(t, strict, strict.Stricter(""), "no limit")
	}
	require.Equal(t, events.Effect("newer"), events.EffectNone.Stricter("newer"))
	require.Equal(t, events.Effect("newer"), events.Effect("newer").Stricter(events.EffectUnsafe))
}

func TestProgramIsReenterableAndHasNoEffectInCommonWithATool(t *testing.T) {
	t.Parallel()
	program := events.EffectProgram
	require.True(t, program.Reenterable())
	require.NotContains(t, events.Effects(), program, "a tool cannot declare it")
	require.Equal(t, program, program.Stricter(program))
	require.Equal(t, program, program.Stricter(""), "no limit")
	for _, e := range append(events.Effects(), "newer") {
		require.Equal(t, events.EffectUnsafe, program.Stricter(e), e)
		require.Equal(t, events.EffectUnsafe, e.Stricter(program), e)
	}
	require.Equal(t, events.EffectUnsafe, events.Effect("").Stricter(program), "of a claim without effect")
}
