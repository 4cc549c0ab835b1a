package docs_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgramsThatExamplesShowAreTheirFiles(t *testing.T) {
	t.Parallel()
	for example, name := range map[string]string{"09-plan": "plan.json", "10-orchestration": "request.json"} {
		file, err := os.ReadFile("../examples/" + example + "/" + name)
		require.NoError(t, err)
		shown := fenced(t, "../examples/"+example+"/README.md", "json")
		require.Len(t, shown, 1, example)
		require.Equal(t, string(file), shown[0].text, example)
	}
}
