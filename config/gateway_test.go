package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
)

func TestInputOfARunFitsTheMemoryOfAUser(t *testing.T) {
	t.Parallel()
	for size, wrong := range map[string]bool{"1KiB": true, "4KiB": false, "16MiB": false, "17MiB": true} {
		variables := map[string]string{"ONETURN_DEV": "true", "ONETURN_MAX_RUN_BODY": size}
		err := config.Load(nil, func(name string) (string, bool) { v, ok := variables[name]; return v, ok }, &config.Gateway{})
		if wrong {
			require.ErrorContains(t, err, "--max-run-body=8MiB", size)
		} else {
			require.NoError(t, err, size)
		}
	}
}
