package tools_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestIDsOfArtifactsAndSkillsAreTextsInTheOrderOfTheirPlaces(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"io.systemprompt/execution":{"skill_id":"exec"}}`
	for result, want := range map[string][2]string{
		`{"skill_id":"top","artifact_id":"a1","artifact":{"skill_id":"inner"},"_metadata":{"skill_id":"meta"}}`: {"a1", "top"},
		`{"artifact_id":"a2","artifact":{"skill_id":"inner"},"_metadata":{"skill_id":"meta"},` + meta + `}`:     {"a2", "inner"},
		`{"artifact_id":"a3","artifact":{},"_metadata":{"skill_id":"meta"},` + meta + `}`:                       {"a3", "meta"},
		`{"artifact":{"skill_id":5},"_metadata":[],` + meta + `}`:                                               {"", "exec"},
		`{"artifact_id":"a4","artifact":{"skill_id":5},"_metadata":{}}`:                                         {"a4", ""},
		`{"skill_id":null,"artifact_id":7,"artifact":{"skill_id":"inner","artifact_id":"x"}}`:                   {"", "inner"},
		`{"skill_id":"","artifact":"text","_metadata":{"skill_id":["x"]},"_meta":7}`:                            {"", ""},
		`{"skill_id":"` + strings.Repeat("x", 2000) + `","artifact":{"skill_id":"inner"}}`:                      {"", "inner"},
		`{"skill_id":"a\nb","artifact_id":"\u0000","artifact":{"skill_id":"inner"}}`:                            {"", "inner"},
		`["skill_id"]`: {"", ""}, `"skill_id"`: {"", ""}, `null`: {"", ""},
	} {
		tree, err := events.Decode([]byte(result))
		require.NoError(t, err)
		require.Equal(t, want, [2]string{tools.ArtifactID(tree), tools.SkillID(tree)}, "%.100s", result)
	}
}
