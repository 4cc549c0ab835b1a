package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func TestWideParagraphsAreBrokenAndOthersStay(t *testing.T) {
	t.Parallel()
	wide := strings.TrimSpace(strings.Repeat("word ", 30))
	text := "one\ntwo\n\n" + wide + "\nend\n\n  {" + wide + "}"
	blocks := strings.Split(cli.Paragraphs(text), "\n\n")
	require.Equal(t, "one\ntwo", blocks[0])
	require.Equal(t, strings.Fields(wide+" end"), strings.Fields(blocks[1]))
	for line := range strings.SplitSeq(blocks[1], "\n") {
		require.LessOrEqual(t, len(line), cli.Width)
	}
	require.Equal(t, "  {"+wide+"}", blocks[2])
}
