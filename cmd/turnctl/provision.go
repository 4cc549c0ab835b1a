package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// Provision and doctor share planOf, which makes the plan from the settings, and tier, which reads which failures
// the records survive. Provision applies the plan, or with --dry-run prints how the server differs from it.

// provisioned is the output of turnctl provision.
type provisioned struct {
	DryRun   bool                `json:"dry_run"`
	Changes  []provision.Change  `json:"changes"`        // what was done; empty in a dry run
	Findings []provision.Finding `json:"findings"`       // in a dry run: how the server differs from the plan
	Tier     *provision.Tier     `json:"tier,omitempty"` // absent before the journal exists
}

func (a *app) provision() *cobra.Command {
	var cfg config.Provision
	var dryRun bool
	c := a.command(&cobra.Command{
		Use:   "provision",
		Short: "Create the streams, buckets and consumers on an external server",
		Long: `Provision creates what workers need on a NATS server, and applies the settings. It can run again at any
time and changes only what differs. Before any change it refuses settings that would lose records or
weaken the guarantees. The embedded server of a worker needs no provisioning.`,
		Example: `  turnctl provision --nats nats://nats.example:4222 --replicas 3
  turnctl provision --dry-run`,
		Args: cli.NoArguments(""),
	}, &cfg, func(ctx context.Context, _ []string) error {
		plan, err := planOf(&cfg)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		s, err := a.connect(&cfg.Turnctl)
		if err != nil {
			return err
		}
		defer s.close()
		out := &provisioned{DryRun: dryRun, Changes: []provision.Change{}, Findings: []provision.Finding{}}
		if dryRun {
			found, err := provision.Check(ctx, s.js, plan)
			if err != nil {
				return err
			}
			out.Findings = append(out.Findings, found...)
			out.Tier = s.tier(ctx, plan)
			return a.print(cfg.Format, out, out.text)
		}
		changes, err := provision.Apply(ctx, s.js, plan)
		out.Changes = append(out.Changes, changes...)
		if err == nil {
			out.Tier = s.tier(ctx, plan)
		}
		if err != nil && len(changes) == 0 {
			return err
		}
		// What was done before an error is printed too.
		return errors.Join(err, a.print(cfg.Format, out, out.text))
	})
	c.Flags().BoolVar(&dryRun, "dry-run", false, "report what would change and change nothing")
	return c
}

// embeddedName is the name of the embedded server of a worker.
const embeddedName = "oneturn-embedded"

// tier reads which failures the stored records survive; nil if that is unknown.
func (s *server) tier(ctx context.Context, plan provision.Plan) *provision.Tier {
	tier, err := provision.ReadTier(ctx, s.js, plan, provision.SyncUnknown)
	if err != nil {
		return nil
	}
	if s.nc.ConnectedServerName() == embeddedName {
		tier.Text += " This is the embedded server of a worker, which prints the tier at its start: embedded or single-sync."
	}
	return &tier
}

// planOf turns the settings into a plan.
func planOf(cfg *config.Provision) (provision.Plan, error) {
	space, err := subjects.New(cfg.Prefix)
	if err != nil {
		return provision.Plan{}, err
	}
	return provision.New(provision.Options{
		Space: space, Pools: cfg.Pools, AckWait: cfg.AckWait, Retention: cfg.Retention, MaxTurnLife: cfg.MaxTurnLife,
		MaxEventAge: cfg.MaxEventAge, DeadAge: cfg.DeadAge, ContextAge: cfg.ContextAge, Replicas: cfg.Replicas,
		InMaxBytes: int64(cfg.InMaxBytes), DeadMaxBytes: int64(cfg.DeadMaxBytes), BlobsMaxBytes: int64(cfg.BlobsMaxBytes),
		Memory: cfg.Memory, ReadMirror: cfg.ReadMirror, ReadMirrorTags: cfg.ReadMirrorTags,
	})
}

func (p *provisioned) text(w io.Writer) {
	var rows [][]string
	for _, c := range p.Changes {
		if len(c.Details) == 0 {
			rows = append(rows, []string{string(c.Action), c.Object})
		}
		for i, detail := range c.Details {
			if i == 0 {
				rows = append(rows, []string{string(c.Action), c.Object, detail})
				continue
			}
			rows = append(rows, []string{"", "", detail})
		}
	}
	table(w, 0, rows)
	if p.DryRun {
		p.dryRunText(w)
	}
	if p.Tier != nil {
		fmt.Fprintln(w, wrap("durability "+p.Tier.Name+": "+p.Tier.Text, 0))
	}
}

// dryRunText prints how the server differs from the plan.
func (p *provisioned) dryRunText(w io.Writer) {
	if len(p.Findings) == 0 {
		fmt.Fprintln(w, "nothing would change: all is as planned")
	}
	for _, f := range p.Findings {
		if f.Setting == "" && f.Have == "missing" {
			fmt.Fprintf(w, "would create  %s\n", f.Object)
			continue
		}
		findingText(w, f)
	}
}

// findingText prints a difference on one line if it is missing as a whole, else with both
// values, and the fix below if there is more to do than to provision.
func findingText(w io.Writer, f provision.Finding) {
	if f.Setting == "" {
		fmt.Fprintf(w, "%-7s  %s is %s\n", f.Severity, f.Object, f.Have)
	} else {
		fmt.Fprintf(w, "%-7s  %s: %s is %s, expected %s\n", f.Severity, f.Object, f.Setting, f.Have, f.Want)
	}
	fmt.Fprintln(w, wrap("fix: "+f.Fix, 9))
}
