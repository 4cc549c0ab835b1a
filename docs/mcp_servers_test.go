package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestManifestOfTheMCPPageBindsItsTool(t *testing.T) {
	t.Parallel()
	set, err := bindings.Load(t.Context(), bindings.Options{Root: folderOf(t, "mcp-servers.md")})
	require.NoError(t, err)
	for _, d := range set.Diagnostics() {
		require.Equal(t, diag.SeverityInfo, d.Severity, d.String())
	}
	require.Len(t, set.Bindings(), 1)
	to, ok := set.Bindings()[0].Target.(*target.MCP)
	require.True(t, ok)
	require.Equal(t, "find_trains", to.Tool)
	require.Equal(t, []string{"railway-mcp", "--read-only"}, to.Server.Command)
	require.Equal(t, 4, to.Server.Sessions)
	require.True(t, to.Server.TrustAnnotations)
}

func TestMCPPageNamesTheKeysOfMetaAndIsShort(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("mcp-servers.md")
	require.NoError(t, err)
	for _, key := range []string{
		mcptool.MetaIdempotencyKey, mcptool.MetaFencingToken, mcptool.MetaEpoch, mcptool.MetaAttempt, mcptool.MetaCall, mcptool.MetaDepth,
		mcptool.MetaCode, mcptool.MetaRetryable, mcptool.MetaRetryAfter,
	} {
		require.Contains(t, string(page), "`"+key)
	}
	require.Contains(t, string(page), "`"+mcptool.Component+"`")
	require.LessOrEqual(t, strings.Count(string(page), "\n"), 120)
}
