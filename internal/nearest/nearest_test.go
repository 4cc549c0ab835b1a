package nearest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/nearest"
)

func Example() {
	rule := nearest.Rule{
		Fold:  strings.ToLower,
		Edits: func(_, candidate string) int { return len(candidate) / 3 },
	}
	known := []string{"agent", "effect", "model"}
	fmt.Printf("%q %q\n", nearest.Of("Efect", known, rule), nearest.Of("timeout", known, rule))
	// Output: "effect" ""
}

// within is the rule that allows n edits.
func within(n int) nearest.Rule {
	return nearest.Rule{Edits: func(string, string) int { return n }}
}

func TestEachEditCountsOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		word string
		want int
	}{
		"same":               {"effect", 0},
		"inserted":           {"efffect", 1},
		"deleted":            {"efect", 1},
		"replaced":           {"affect", 1},
		"neighbours swapped": {"effetc", 1},
		"first two swapped":  {"feefct", 2}, // fe|ef|ct: two swaps
		"deleted at ends":    {"ffec", 2},
		"case":               {"Effect", 1},
		"nothing alike":      {"zzz", 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "effect", nearest.Of(tc.word, []string{"effect"}, within(tc.want)))
			require.Empty(t, nearest.Of(tc.word, []string{"effect"}, within(tc.want-1)))
		})
	}
}

func TestNearestCandidateWinsAndOfEqualOnesTheFirst(t *testing.T) {
	t.Parallel()
	require.Equal(t, "tool", nearest.Of("toll", []string{"till you", "tool", "tall"}, within(5)))
	require.Equal(t, "tall", nearest.Of("toll", []string{"tall", "tool"}, within(5)))
	require.Equal(t, "toll", nearest.Of("toll", []string{"tall", "toll", "toll "}, within(5)), "a word is nearest to itself")
}

func TestFoldDecidesWhatCountsAndTheCandidateIsGivenAsWritten(t *testing.T) {
	t.Parallel()
	rule := within(0)
	rule.Fold = func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	require.Equal(t, "User_Name", nearest.Of("userName", []string{"user", "User_Name"}, rule))
	var got []string
	rule.Edits = func(word, candidate string) int { got = []string{word, candidate}; return 2 }
	nearest.Of("A_B", []string{"C_D"}, rule)
	require.Equal(t, []string{"A_B", "C_D"}, got, "the rule judges what was written")
}

func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	anything := within(1 << 20)
	long := strings.Repeat("x", 64)
	require.Equal(t, long, nearest.Of(long, []string{long}, anything))
	require.Empty(t, nearest.Of(long+"x", []string{long}, anything))
	require.Empty(t, nearest.Of(long, []string{long + "x"}, anything))
	require.Empty(t, nearest.Of("", []string{"a"}, anything))
	require.Empty(t, nearest.Of("a", []string{""}, anything))
	require.Empty(t, nearest.Of("a", nil, anything))

	many := make([]string, 201)
	many[199], many[200] = "near", "word"
	require.Equal(t, "near", nearest.Of("word", many, anything))
}

func TestBytesThatAreNotTextAreComparedLikeOthers(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\xffb", nearest.Of("a\xfeb", []string{"a\xffb"}, within(1)))
}
