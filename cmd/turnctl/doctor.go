package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/provision"
)

// Verdicts of a check.
const (
	verdictOK      = "ok"
	verdictInfo    = "info"
	verdictWarning = "warning"
	verdictError   = "error"
)

// checkup is the result of one check of turnctl doctor.
type checkup struct {
	Check   string `json:"check"`   // stable name
	Verdict string `json:"verdict"` // ok, info, warning, error
	Detail  string `json:"detail"`
	Fix     string `json:"fix,omitempty"`
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
		d.Healthy = d.worst() != verdictError
		if err := a.print(cfg.Format, d, d.text); err != nil {
			return err
		}
		if !d.Healthy {
			return cli.ErrReported
		}
		return nil
	})
}

func (d *diagnosis) addf(check, verdict, fix, format string, args ...any) {
	d.Checks = append(d.Checks, checkup{Check: check, Verdict: verdict, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

// worst is the worst verdict of all checks.
func (d *diagnosis) worst() string {
	worst := verdictOK
	rank := map[string]int{verdictOK: 0, verdictInfo: 1, verdictWarning: 2, verdictError: 3}
	for _, c := range d.Checks {
		if rank[c.Verdict] > rank[worst] {
			worst = c.Verdict
		}
	}
	return worst
}

// count returns how many checks have a verdict.
func (d *diagnosis) count(verdict string) (n int) {
	for _, c := range d.Checks {
		if c.Verdict == verdict {
			n++
		}
	}
	return n
}

func (d *diagnosis) text(w io.Writer) {
	for _, c := range d.Checks {
		fmt.Fprintf(w, "%-7s  %-10s  %s\n", c.Verdict, c.Check, hang(clean(c.Detail, 1000), 21))
		if c.Fix != "" {
			fmt.Fprintln(w, wrap("fix: "+clean(c.Fix, 500), 21))
		}
	}
	switch warnings := d.count(verdictWarning); {
	case !d.Healthy:
		fmt.Fprintln(w, "something is broken: see the errors above")
	case warnings > 0:
		fmt.Fprintf(w, "nothing is broken; %s above\n", plural(warnings, "warning"))
	default:
		fmt.Fprintln(w, "nothing is broken")
	}
}
