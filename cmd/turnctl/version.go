package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
)

// build is what the binary was built from, as JSON.
type build struct {
	Version  string `json:"version"` // of the module, "(devel)" for a build of a working tree
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the working tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) version() *cobra.Command {
	var cfg config.Output
	return a.command(&cobra.Command{
		Use: "version", Short: "Print what this binary was built from", Args: cobra.NoArgs,
	}, &cfg, func(context.Context, []string) error {
		b := readBuild()
		return a.print(cfg.Format, b, func(w io.Writer) { fmt.Fprintln(w, "turnctl", b) })
	})
}

// String is the build for people.
func (b build) String() string {
	text := b.Version
	if b.Revision != "" {
		text += fmt.Sprintf(" (%.12s", b.Revision)
		if b.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return fmt.Sprintf("%s, %s %s", text, b.Go, b.Platform)
}

func readBuild() build {
	b := build(cli.ReadBuild())
	b.Version = cmp.Or(b.Version, "(devel)")
	return b
}
