package main

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// TestDoctorNamesStreamsThatMayFillTheReserveForResponses: and the sizes that it suggests do not.
func TestDoctorNamesStreamsThatMayFillTheReserveForResponses(t *testing.T) {
	t.Parallel()
	const limit = 2 << 30
	test := oneturntest.NewServer(t)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	nc := test.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s := &server{nc: nc, js: js, space: space}
	checks := func() []checkup {
		var d diagnosis
		d.reserve(t.Context(), s, limit)
		return d.Checks
	}
	require.Empty(t, checks(), "there are no streams")
	test.Provision(func(o *provision.Options) { o.InMaxBytes, o.DeadMaxBytes = 512<<20, 128<<20 })
	require.Len(t, checks(), 1)
	require.Equal(t, diag.SeverityWarning, checks()[0].Severity)
	require.Contains(t, checks()[0].Fix, "turnctl provision --in-max-bytes 67108864 --dead-max-bytes 33554432")
	config := func(name string) jetstream.StreamConfig {
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		return stream.CachedInfo().Config
	}
	for name, size := range map[string]int64{"ONETURN_IN": 64 << 20, "ONETURN_DEAD": 32 << 20} {
		smaller := config(name)
		smaller.MaxBytes = size
		_, err := js.UpdateStream(t.Context(), smaller)
		require.NoError(t, err)
	}
	require.Empty(t, checks())
}
