package provision

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/diag"
)

// Finding is one difference between the server and the plan. With [diag.SeverityError] the promise
// does not hold and a worker must not start; with [diag.SeverityInfo] the difference is safe and perhaps intended.
type Finding struct {
	Object  string `json:"object"`            // "stream ONETURN_IN"
	Setting string `json:"setting,omitempty"` // "" if the whole object is missing
	Have    string `json:"have"`
	Want    string `json:"want"`
	diag.Finding
}

func finding(object, setting, have, want, fix string) Finding {
	return Finding{object, setting, have, want, diag.Finding{Severity: diag.SeverityError, Fix: fix}}
}

// String is the finding as one line.
func (f Finding) String() string {
	what := f.Object
	if f.Setting != "" {
		what += ": " + f.Setting
	}
	return fmt.Sprintf("%s is %s, expected %s: %s", what, f.Have, f.Want, f.Fix)
}

// Check compares the server with plan and changes nothing. No findings: all is as planned.
// An error means that it could not look, or that the server is too old.
func Check(ctx context.Context, js jetstream.JetStream, plan Plan) ([]Finding, error) {
	if err := CheckServer(js.Conn()); err != nil {
		return nil, err
	}
	found, err := readState(ctx, js, plan)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, s := range found.streams {
		findings = append(findings, report(plan.command, s.object(), s.have == nil, s.diffs)...)
	}
	for _, c := range found.consumers {
		findings = append(findings, report(plan.command, c.object(), c.have == nil, c.diffs)...)
	}
	for _, e := range found.exceptions() {
		for i := range findings {
			if f := &findings[i]; f.Object == "stream "+e.stream && f.Setting == e.setting {
				f.Severity, f.Fix = e.severity, e.fix
			}
		}
	}
	return findings, nil
}

// report turns the differences of one object into findings, which command fixes.
func report(command, object string, missing bool, diffs []difference) []Finding {
	provision := "run " + command
	if missing {
		return []Finding{finding(object, "", "missing", "there", provision)}
	}
	var findings []Finding
	for _, d := range diffs {
		f := finding(object, d.setting, d.have, d.want, provision)
		switch {
		case d.rule == initial:
			f.Severity = diag.SeverityInfo
			f.Fix = "it was made by an older version: no action for up to 100 workers; with more, delete it while no worker runs and run turnctl provision"
		case d.rule == tunable && d.refused:
			f.Severity, f.Fix = diag.SeverityInfo, "it is not the default: no action if intended; turnctl provision refuses to lower it, so repeat your flags or --config"
		case d.rule == tunable:
			f.Severity = diag.SeverityInfo
			f.Fix = "it is not the default: no action if intended; repeat your flags or --config, or turnctl provision sets it to " + d.want
		case d.refused:
			f.Fix = "it was not made by provision: rename or delete it, or choose another --prefix"
		}
		findings = append(findings, f)
	}
	return findings
}
