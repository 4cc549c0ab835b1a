package approval_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	approval "github.com/oneturn/oneturn/examples/02-approval"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// press returns a Press that counts its calls.
func press() (p approval.Press, saved, published *int) {
	saved, published = new(int), new(int)
	return approval.Press{
		Save: func(context.Context, approval.Post) (int, error) {
			*saved++
			return 41 + *saved, nil
		},
		Publish: func(context.Context, int) error {
			*published++
			return nil
		},
	}, saved, published
}

func TestPostIsPublishedOnceThoughTheToolRunsAgain(t *testing.T) {
	t.Parallel()
	p, saved, published := press()
	var host oneturntest.Host // a person who has not answered yet
	for range 3 {
		_, err := oneturntest.CallTool(t.Context(), &host, p.Approve, approval.Post{Title: "Spring sale"})
		require.ErrorIs(t, err, tool.ErrParked)
	}
	require.Len(t, host.Asked(), 1)

	host.Answer("1", approval.Decision{Status: "approved"})
	result, err := oneturntest.CallTool(t.Context(), &host, p.Approve, approval.Post{Title: "Spring sale"})
	require.NoError(t, err)
	require.Equal(t, "Spring sale is published.", result["message"])
	require.Equal(t, []int{1, 1}, []int{*saved, *published})
}

func TestPostStaysADraftWithoutAYes(t *testing.T) {
	t.Parallel()
	for want, script := range map[string]func(*oneturntest.Host){
		"Not published: too loud":                              func(h *oneturntest.Host) { h.Answer("1", approval.Decision{Status: "rejected", Comment: "too loud"}) },
		"No decision within a day: draft 42 is not published.": func(h *oneturntest.Host) { h.Expire("1") },
	} {
		p, _, published := press()
		var host oneturntest.Host
		script(&host)
		result, err := oneturntest.CallTool(t.Context(), &host, p.Approve, approval.Post{Title: "Spring sale"})
		require.NoError(t, err)
		require.Equal(t, want, result["message"])
		require.Zero(t, *published)
	}
}
