package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A pin is the digest of an MCP tool as the server describes it now, next to the digest in its manifest. Tools are
// asked with the digest of the manifest removed (unpinned), because a toolbox refuses a tool that has changed.

// pin is the digest of one tool of an MCP server.
type pin struct {
	Workflow string `json:"workflow,omitempty"` // "" for a tool of the shared file
	Tool     string `json:"tool"`
	Server   string `json:"server"`
	Digest   string `json:"digest"`           // of the server now
	Pinned   string `json:"pinned,omitempty"` // in the manifest
	Error    string `json:"error,omitempty"`  // why there is no digest
}

func (a *app) toolsPin() *cobra.Command {
	var cfg liveSettings
	return a.command(&cobra.Command{
		Use:   "pin [DIR]",
		Short: "Print the digests of the tools of MCP servers, for manifests",
		Long: `Pin asks the MCP servers of a folder of workflows (default: workflows) for their tools, and prints
for each tool the line for its manifest, below mcp:. A tool with a digest is refused when the server
changes its description: the name, the schemas or the annotations. Review the change, then pin again.
Servers that are commands are started for that.

Exit code: 0 all digests match, 1 a digest is missing or differs, or a server did not
answer, 2 the folder cannot be read.`,
		Example: "  turnctl tools pin ./workflows",
		Args:    cli.Arguments(0, 1, "a folder"),
	}, &cfg, func(ctx context.Context, args []string) error {
		set, err := inspect(ctx, "tools pin", dirOf(args), cfg.Python, bindings.VariableSources{})
		if err != nil {
			return err
		}
		var rows []*toolRow
		for _, r := range toolRows(set) {
			if r.Kind == bindings.KindMCP {
				r.binding = unpinned(r.binding)
				rows = append(rows, r)
			}
		}
		a.live(ctx, dirOf(args), &cfg, rows)
		pins, good := pinsOf(rows)
		return a.printOutcome(good, cfg.Format, pins, func(w io.Writer) { pinsText(w, pins) })
	})
}

// unpinned is a binding without the digest of its manifest, so that its tool is described in any case.
func unpinned(b *bindings.Binding) *bindings.Binding {
	t, ok := b.Target.(*target.MCP)
	if !ok {
		return b
	}
	anyDigest, one := *t, *b
	anyDigest.Digest, one.Target = "", &anyDigest
	return &one
}

func pinsOf(rows []*toolRow) (pins []pin, good bool) {
	pins, good = make([]pin, 0, len(rows)), true
	for _, r := range rows {
		p := pin{Workflow: r.Workflow, Tool: r.Tool, Server: r.Where.Server, Pinned: r.Where.Digest}
		if r.Live.Reached {
			p.Digest = r.Live.Version
		} else {
			p.Error = r.Live.Error
		}
		good = good && p.Digest != "" && p.Digest == p.Pinned
		pins = append(pins, p)
	}
	return pins, good
}

func pinsText(w io.Writer, pins []pin) {
	if len(pins) == 0 {
		fmt.Fprintln(w, "no tools of MCP servers")
	}
	for _, p := range pins {
		state := "not pinned"
		switch {
		case p.Error != "":
			state = "no description"
		case p.Pinned == p.Digest:
			state = "pinned, unchanged"
		case p.Pinned != "":
			state = "changed since it was pinned"
		}
		fmt.Fprintf(w, "%s/%s, server %s: %s\n", id(p.Workflow), id(p.Tool), id(p.Server), state)
		if p.Error != "" {
			fmt.Fprintln(w, wrap(clean(p.Error, 500), 4))
			continue
		}
		fmt.Fprintf(w, "    digest: %q\n", p.Digest)
	}
}
