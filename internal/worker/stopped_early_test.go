package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
)

func TestWorkerThatIsStoppedBeforeItHasBegunEndsWithoutAnError(t *testing.T) {
	t.Parallel()
	w, err := oneturn.NewWorker(server(t).Connect(), questioner(oneturn.Replay, whoAreYou))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, w.Run(ctx))
}
