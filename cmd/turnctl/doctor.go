package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/provision"
)

// severityOK is the severity of a check that has found nothing.
const severityOK diag.Severity = "ok"

// checkup is the result of one check of turnctl doctor: a finding, with the stable name of its check. The keys
// of its JSON are older than package diag.
type checkup struct {
	Check    string        `json:"check"`
	Severity diag.Severity `json:"verdict"` // ok, info, warning, error
	Message  string        `json:"detail"`
	Fix      string        `json:"fix,omitempty"`
}

// diagnosis is the output of turnctl doctor.
type diagnosis struct {
	Healthy bool            `json:"healthy"` // no error
	Checks  []checkup       `json:"checks"`
	Tier    *provision.Tier `json:"tier"`
}

func (a *app) doctor() *cobra.Command {
	var cfg config.Provision
	return a.command(&cobra.Command{
		Use:   "doctor",
		Short: "Diagnose a server and its set-up",
		Long: `Doctor checks that the server is reachable and new enough, that JetStream is enabled, that streams,
buckets and consumers are as planned, and that workers answer. It reports waiting messages, and which
failures the stored records survive. It changes nothing. It compares with the plan of
turnctl provision with the same settings.

Exit code: 0 no errors, 1 errors.`,
		Args: cli.NoArguments(""),
	}, &cfg, func(ctx context.Context, _ []string) error {
		plan, err := planOf(&cfg)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		d := &diagnosis{Checks: []checkup{}}
		if s, err := a.connect(&cfg.Turnctl); err != nil {
			d.unreachable(err)
		} else {
			defer s.close()
			d.examine(ctx, s, &cfg, plan, a.now)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("doctor: %w", context.Cause(ctx))
		}
		d.Healthy = d.count(diag.SeverityError) == 0
		return a.printOutcome(d.Healthy, cfg.Format, d, d.text)
	})
}

func (d *diagnosis) addf(check string, severity diag.Severity, fix, format string, args ...any) {
	d.Checks = append(d.Checks, checkup{Check: check, Severity: severity, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// count returns how many checks have a severity.
func (d *diagnosis) count(severity diag.Severity) (n int) {
	for _, c := range d.Checks {
		if c.Severity == severity {
			n++
		}
	}
	return n
}

func (d *diagnosis) text(w io.Writer) {
	for _, c := range d.Checks {
		fmt.Fprintf(w, "%-7s  %-10s  %s\n", c.Severity, c.Check, cli.Hang(clean(c.Message, 1000), 21))
		if c.Fix != "" {
			fmt.Fprintln(w, wrap("fix: "+clean(c.Fix, 500), 21))
		}
	}
	switch warnings := d.count(diag.SeverityWarning); {
	case !d.Healthy:
		fmt.Fprintln(w, "something is broken: see the errors above")
	case warnings > 0:
		fmt.Fprintf(w, "nothing is broken; %s above\n", plural.Of(warnings, "warning"))
	default:
		fmt.Fprintln(w, "nothing is broken")
	}
}
