package provision

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/target"
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
	return fmt.Sprintf("%s is %s, planned is %s: %s", what, f.Have, f.Want, f.Fix)
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
	findings = found.checkRetention(findings)
	found.checkLimit(findings)
	found.checkLoss(findings)
	found.checkMemory(findings)
	found.checkRates(findings)
	found.checkDead(findings)
	found.checkWindow(findings)
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
			f.Fix = "it was made by an older version: nothing to do for up to 100 workers; with more, delete it while no worker runs and run turnctl provision"
		case d.rule == tunable && d.refused:
			f.Severity, f.Fix = diag.SeverityInfo, "provisioned otherwise: nothing to do if it is meant; turnctl provision refuses to lower it, so repeat your flags or --config"
		case d.rule == tunable:
			f.Severity = diag.SeverityInfo
			f.Fix = "provisioned otherwise: nothing to do if it is meant; repeat your flags or --config, or turnctl provision sets it to " + d.want
		case d.refused:
			f.Fix = "it was not made by provision: rename or delete it, or choose another --prefix"
		}
		findings = append(findings, f)
	}
	return findings
}

// checkRetention applies rule 11 to the age that the journal really has: shorter than
// planned is sound as long as it covers turn life and event age.
func (s state) checkRetention(findings []Finding) []Finding {
	have := s.stream(s.plan.journal)
	if have == nil || have.MaxAge == 0 || have.MaxAge >= s.plan.minRetention {
		return findings
	}
	for i, f := range findings {
		if f.Object == "stream "+s.plan.journal && f.Setting == "max_age" {
			findings[i].Severity = diag.SeverityError
			findings[i].Fix = fmt.Sprintf("run turnctl provision, or lower --max-turn-life and --max-event-age so that they sum up to at most %s",
				max(0, have.MaxAge-RetentionMargin).Round(time.Second))
		}
	}
	return findings
}

// checkLimit applies rule 13: a journal with a size limit refuses, once it is full, the ends of
// turns too.
func (s state) checkLimit(findings []Finding) {
	setSeverity(findings, "stream "+s.plan.journal, "max_bytes", diag.SeverityError,
		"run turnctl provision: a full journal refuses the ends of turns too; limit the account instead")
}

// checkLoss applies to the ages and sizes that are a matter of taste for other streams. An age limit
// on the inbound stream drops turns that were accepted, one on the timers drops the ends of
// questions, and so does a size limit there, since timers make room for newer ones. Payloads must
// outlive the records that name them, and rates be remembered until they have filled up.
func (s state) checkLoss(findings []Finding) {
	setSeverity(findings, "stream "+s.plan.inbound, "max_age", diag.SeverityError,
		"run turnctl provision: turns that were accepted would vanish without a response; --max-event-age ends old ones as too_old")
	for _, setting := range []string{"max_age", "max_bytes"} {
		setSeverity(findings, "stream "+s.plan.timers, setting, diag.SeverityError, "run turnctl provision: ends of questions would vanish, and their turns wait for them")
	}
	if journal := s.stream(s.plan.journal); journal != nil && s.expires(s.plan.blobs, journal.MaxAge) {
		setSeverity(findings, "stream "+s.plan.blobs, "max_age", diag.SeverityError, "run turnctl provision: payloads would vanish before the records that name them")
	}
	if s.expires(s.plan.limits, target.MaxRefill) {
		setSeverity(findings, "stream "+s.plan.limits, "max_age", diag.SeverityError, "run turnctl provision: rates would be forgotten before they have filled up")
	}
}

// expires reports whether the messages of a stream live for less than an age, 0 for no limit.
func (s state) expires(name string, age time.Duration) bool {
	have := s.stream(name)
	return have != nil && have.MaxAge > 0 && (age == 0 || have.MaxAge < age)
}

// checkMemory lets workers run on a server that was provisioned for a trial: their durability tier
// is what it keeps.
func (s state) checkMemory(findings []Finding) {
	for _, x := range s.streams {
		if x.have != nil && x.have.Storage == jetstream.MemoryStorage {
			setSeverity(findings, x.object(), "storage", diag.SeverityInfo, "nothing to do for a trial: nothing survives the server; to keep records, delete the stream and run turnctl provision")
		}
	}
}

// checkRates leaves a server alone that was provisioned before there were rates: only workers whose
// tools have one need their bucket, and they report it themselves.
func (s state) checkRates(findings []Finding) {
	setSeverity(findings, "stream "+s.plan.limits, "", diag.SeverityInfo,
		"nothing to do as long as no tool has a rate limit; turnctl provision adds it")
}

// checkDead lets workers run on a server that was provisioned before tenants had shares of the dead
// letters, or with another size of them.
func (s state) checkDead(findings []Finding) {
	fix := "it follows --dead-max-bytes: nothing to do if that is meant"
	if have := s.stream(s.plan.dead); have != nil && have.MaxMsgsPerSubject <= 0 {
		fix = "run turnctl provision: one tenant can evict the dead letters of others"
	}
	setSeverity(findings, "stream "+s.plan.dead, "max_msgs_per_subject", diag.SeverityInfo, fix)
}

// checkWindow applies to an inbound stream that was provisioned before its window was short.
func (s state) checkWindow(findings []Finding) {
	if have := s.stream(s.plan.inbound); have != nil && have.Duplicates > InDuplicateWindow {
		setSeverity(findings, "stream "+s.plan.inbound, "duplicate_window", diag.SeverityInfo,
			"run turnctl provision: the server keeps message ids of that long in memory, of up to 64 KB each")
	}
}

// setSeverity sets severity and fix of what was found about a setting of an object, "" for the object
// itself.
func setSeverity(findings []Finding, object, setting string, severity diag.Severity, fix string) {
	for i := range findings {
		if f := &findings[i]; f.Object == object && f.Setting == setting {
			f.Severity, f.Fix = severity, fix
		}
	}
}
