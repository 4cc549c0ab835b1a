package inbound_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbound"
)

func TestDepthThatCannotBeReadIsTooDeep(t *testing.T) {
	t.Parallel()
	require.Zero(t, inbound.Depth(nil))
	for text, want := range map[string]int{
		"0": 0, "1": 1, "3": 3, "98": 98, "99": 99, "100": 99, "65535": 99, "99999999999999999999": 99,
		"": 99, "-1": 99, "+1": 99, " 1": 99, "1.5": 99, "0x1": 99, "one": 99, "1\r\nOneturn-Depth: 0": 99,
	} {
		require.Equal(t, want, inbound.Depth(nats.Header{"Oneturn-Depth": {text}}), "%q", text)
	}
	require.Equal(t, 99, inbound.Depth(nats.Header{"Oneturn-Depth": {"1", "0"}}))
}
