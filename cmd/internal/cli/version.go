package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/config"
)

// Build is what a binary was built from.
type Build struct {
	Version  string // of the module, (devel) for a build of a working tree; "" if it is not known
	Revision string // of the source; "" if it is not known
	Modified bool   // the working tree had changes
	Go       string
	Platform string // operating system and architecture, as linux/amd64
}

// ReadBuild returns what this binary was built from.
func ReadBuild() Build { return buildOf(debug.ReadBuildInfo()) }

func buildOf(info *debug.BuildInfo, ok bool) Build {
	b := Build{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// version is the JSON of the version command.
type version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (b Build) version() version {
	v := version{cmp.Or(b.Version, "unknown"), cmp.Or(b.Revision, "unknown"), b.Go, b.Platform}
	if b.Modified {
		v.Commit += " with changes"
	}
	return v
}

// Text is the build of the named command for people.
func (b Build) Text(command string) string {
	v := b.version()
	return fmt.Sprintf("oneturn %s %s (commit %s, %s, %s)", command, v.Version, v.Commit, v.Go, v.Platform)
}

// Version is the command that prints what the binary was built from.
func Version(env Lookup) *cobra.Command {
	var out config.Output
	return Command(&cobra.Command{
		Use: "version", Short: "Print what this binary was built from", Args: NoArguments(""),
	}, env, func(c *cobra.Command, _ []string) error {
		b := ReadBuild()
		if out.Format == "json" {
			return WriteJSON(c.OutOrStdout(), b.version(), "")
		}
		fmt.Fprintln(c.OutOrStdout(), b.Text(c.Root().Name()))
		return nil
	}, &out)
}
