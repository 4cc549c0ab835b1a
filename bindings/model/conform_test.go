package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConformReturnsTheObjectItselfWhenNothingChanges(t *testing.T) {
	t.Parallel()
	m := schema(t, `{"type":"object","properties":{"n":{"type":"integer"},"d":{"default":1},"o":{"type":"object","properties":{"b":{"type":"boolean"}}}}}`)
	for doc, want := range map[string]bool{
		`{"d":2,"n":1}`:                  false,
		`{"d":2,"n":1,"o":{"b":true}}`:   false,
		`{"n":1}`:                        true,
		`{"d":2,"n":"1"}`:                true,
		`{"d":2,"n":1,"o":{"b":"true"}}`: true,
	} {
		in := tree(t, doc)
		out, changed, violations := m.Conform(in)
		require.Empty(t, violations)
		require.Equal(t, want, changed, doc)
		require.Equal(t, doc, text(t, in), "the input is never modified")
		checked, _ := m.Check(in)
		require.Equal(t, checked, out)
		if out["mark"] = true; changed {
			require.NotContains(t, in, "mark")
		} else {
			require.Contains(t, in, "mark")
		}
		require.NotContains(t, checked, "mark")
	}
	out, changed, violations := m.Conform(tree(t, `{"n":[]}`))
	require.Nil(t, out)
	require.False(t, changed)
	require.NotEmpty(t, violations)
}
