package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
)

func TestVariableThatIsNearlyASettingIsFound(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"ONETURN_WORKFLOW": "ONETURN_WORKFLOWS", "ONETURN_LOGLEVEL": "ONETURN_LOG_LEVEL"},
		config.Misspelt([]string{
			"ONETURN_WORKFLOW=wf", "ONETURN_LOGLEVEL=debug", "ONETURN_STORE=data", "PATH=/bin", "WORKFLOW=x", "ONETURN_",
			"ONETURN_HELLO_LEDGER=of a tool", "ONETURN_WAIT=of another command", "ONETURN_NATS_PASSWORD=secret",
		}, &config.Worker{}))
	require.Empty(t, config.Misspelt([]string{"ONETURN_WORKFLOW=wf"}, config.Worker{}))
}
