package config

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNextTryClosesTheSocketOfTheOneBefore(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	d := &dialer{}
	first, err := d.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	second, err := d.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	_, err = first.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = second.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, second.Close())
}
