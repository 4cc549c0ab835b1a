package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
)

func TestVariableThatSetsNothingIsFoundWithTheSettingThatWasMeant(t *testing.T) {
	t.Parallel()
	environ := []string{
		"ONETURN_WORKFLOW=wf", "ONETURN_LOGLEVEL=debug", "ONETURN_STORE=data", "PATH=/bin", "WORKFLOW=x", "OTEL_TRACE=x", "ONETURN_EMPTY=",
		"ONETURN_HELLO_LEDGER=of a tool", "ONETURN_WAIT=of another command", "ONETURN_NATS_PASSWORD=secret", "ONETURN_REPLICA=3",
		"ONETURN_FAILPOINTS=of a test", "ONETURN_PUBLISHER_PASSWORD=of an account", "ONETURN_USER=of publisher answer",
	}
	require.Equal(t, []config.UnknownVariable{
		{Name: "ONETURN_HELLO_LEDGER"},
		{Name: "ONETURN_LOGLEVEL", Meant: "ONETURN_LOG_LEVEL"},
		{Name: "ONETURN_REPLICA", Meant: "ONETURN_REPLICAS"},
		{Name: "ONETURN_WORKFLOW", Meant: "ONETURN_WORKFLOWS"},
	}, config.UnknownVariables(environ, &config.Worker{}))
	passed := &config.Worker{ToolEnv: []string{"ONETURN_HELLO_*"}}
	require.NotContains(t, config.UnknownVariables(environ, passed), config.UnknownVariable{Name: "ONETURN_HELLO_LEDGER"})
	require.NotContains(t, config.UnknownVariables(environ, &config.Publisher{}), "ONETURN_WORKFLOW", "of publisher answer")
}

func TestEveryVariableThatIsReadIsKnown(t *testing.T) {
	t.Parallel()
	read := regexp.MustCompile("`flag:\"([a-z-]+)\"|\"(ONETURN_(?:FAILPOINT|MUTANT|TEST|DEMO)[A-Z_]*)")
	found := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || filepath.Base(path) == "misspelt_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range read.FindAllStringSubmatch(string(text), -1) {
			name := m[2]
			if m[1] != "" {
				name = "ONETURN_" + strings.ToUpper(strings.ReplaceAll(m[1], "-", "_"))
			}
			found++
			require.Empty(t, config.UnknownVariables([]string{name + "=x"}), path)
		}
		return err
	}))
	require.Greater(t, found, 80)
}
