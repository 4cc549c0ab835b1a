package cli

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestBuildNamesTheSourceAndWhetherItWasChanged(t *testing.T) {
	t.Parallel()
	info := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main:     debug.Module{Version: "v1.2.3"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: modified}},
		}
	}
	there := ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	require.Equal(t, "oneturn worker v1.2.3 (commit abc"+there, buildOf(info("false"), true).Text("worker"))
	require.Equal(t, "oneturn worker v1.2.3 (commit abc with changes"+there, buildOf(info("true"), true).Text("worker"))
	require.Equal(t, "oneturn worker unknown (commit unknown"+there, buildOf(nil, false).Text("worker"))
}

func TestVersionIsTextOrJSONAndNamesTheCommand(t *testing.T) {
	t.Parallel()
	printed := func(args ...string) string {
		var out bytes.Buffer
		root := Root(&cobra.Command{Use: "tool"}, "tool 1")
		root.AddCommand(Version(func(string) (string, bool) { return "", false }))
		root.SetOut(&out)
		require.Equal(t, OK, Execute(t.Context(), root, args))
		return out.String()
	}
	require.Equal(t, "tool 1\n", printed("--version"))
	require.Equal(t, ReadBuild().Text("tool")+"\n", printed("version"))
	var got map[string]string
	require.NoError(t, json.Unmarshal([]byte(printed("version", "-o", "json")), &got))
	require.Len(t, got, 4)
	require.Equal(t, runtime.Version(), got["go"])
}
