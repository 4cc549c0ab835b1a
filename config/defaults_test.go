package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/defaults"
)

func TestDefaultsOfSettingsAreTheSharedOnes(t *testing.T) {
	t.Parallel()
	w, err := load[config.Worker](t, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []any{
		defaults.Slots, defaults.ToolTimeout, defaults.BindingGrace, defaults.MaxEventAge, defaults.MaxTurnLife, defaults.Retention,
		defaults.ParkAfter, defaults.SweepEvery, defaults.SoftStop, defaults.AckWait,
	}, []any{w.Slots, w.ToolTimeout, w.BindingGrace, w.MaxEventAge, w.MaxTurnLife, w.Retention, w.ParkAfter, w.SweepEvery, w.SoftStop, w.AckWait})

	p, err := load[config.Provision](t, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []any{
		defaults.AckWait, defaults.Retention, defaults.MaxTurnLife, defaults.MaxEventAge, defaults.DeadAge, defaults.ContextAge,
		config.Bytes(defaults.InMaxBytes), config.Bytes(defaults.DeadMaxBytes), config.Bytes(defaults.BlobsMaxBytes),
	}, []any{p.AckWait, p.Retention, p.MaxTurnLife, p.MaxEventAge, p.DeadAge, p.ContextAge, p.InMaxBytes, p.DeadMaxBytes, p.BlobsMaxBytes})
}
