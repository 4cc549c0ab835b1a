package main

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) { oneturntest.VerifyNoLeaks(m) }

func TestExpensiveSeatsAreAskedForFirst(t *testing.T) {
	t.Parallel()
	here, there := mcp.NewInMemoryTransports()
	done := make(chan error, 1)
	go func() { done <- serve(t.Context(), there) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(t.Context(), here, nil)
	require.NoError(t, err)
	call := &mcp.CallToolParams{Name: "book_train", Arguments: map[string]any{"train": "TGV 9575", "euros": 120}}
	for _, action := range []string{"decline", "accept"} {
		call.InputResponses = nil
		r, err := session.CallTool(t.Context(), call)
		require.NoError(t, err)
		require.True(t, r.NeedsInput())
		call.InputResponses = mcp.InputResponseMap{"approve": &mcp.ElicitResult{Action: action, Content: map[string]any{"class": "first"}}}
		r, err = session.CallTool(t.Context(), call)
		require.NoError(t, err)
		require.False(t, r.NeedsInput())
		result, ok := r.StructuredContent.(map[string]any)
		require.True(t, ok)
		require.Equal(t, map[string]any{"decline": "cancelled", "accept": "success"}[action], result["status"])
	}
	require.NoError(t, session.Close())
	require.NoError(t, <-done)
}
