package provision

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Most settings have one severity, which compare.go decides by their rule. The table of this file has
// the settings that matter more, or less, on one stream than on the others, or for some values only.

// exception replaces severity and fix of a finding about a setting of a stream, "" for the stream itself.
type exception struct {
	stream, setting string
	severity        diag.Severity
	fix             string
}

// exceptions lists those that apply to what the server has.
func (s state) exceptions() []exception {
	p := s.plan
	journal, inbound, dead := s.stream(p.journal), s.stream(p.inbound), s.stream(p.dead)
	all := []exception{
		// A full journal refuses the ends of turns too (rule 13).
		{p.journal, "max_bytes", diag.SeverityError, "run turnctl provision: a full journal refuses the ends of turns too; limit the account instead"},
		{p.inbound, "max_age", diag.SeverityError, "run turnctl provision: turns that were accepted would vanish without a response; --max-event-age ends old ones as too_old"},
		// Timers make room for newer ones.
		{p.timers, "max_age", diag.SeverityError, "run turnctl provision: ends of questions would vanish, and their turns wait for them"},
		{p.timers, "max_bytes", diag.SeverityError, "run turnctl provision: ends of questions would vanish, and their turns wait for them"},
		// Only workers whose tools have rates need the bucket, and they report it themselves.
		{p.limits, "", diag.SeverityInfo, "no action as long as no tool has a rate limit; turnctl provision adds it"},
		// Workers run on servers that were provisioned before there was one.
		{p.workflows, "", diag.SeverityInfo, "no action without a gateway; turnctl provision adds it"},
	}
	when := func(applies bool, stream, setting string, severity diag.Severity, fix string) {
		if applies {
			all = append(all, exception{stream, setting, severity, fix})
		}
	}
	if journal != nil {
		// Rule 11: shorter than planned is safe as long as it covers turn life and event age.
		when(journal.MaxAge > 0 && journal.MaxAge < p.minRetention, p.journal, "max_age", diag.SeverityError,
			fmt.Sprintf("run turnctl provision, or lower --max-turn-life and --max-event-age so that they sum up to at most %s",
				max(0, journal.MaxAge-RetentionMargin).Round(time.Second)))
		when(s.expires(p.blobs, journal.MaxAge), p.blobs, "max_age", diag.SeverityError, "run turnctl provision: payloads would vanish before the records that name them")
	}
	when(s.expires(p.limits, target.MaxRefill), p.limits, "max_age", diag.SeverityError, "run turnctl provision: rates would be forgotten before they have filled up")
	for _, x := range s.streams {
		// A server that was provisioned for a trial keeps what its durability tier states.
		when(x.have != nil && x.have.Storage == jetstream.MemoryStorage, x.want.Name, "storage", diag.SeverityInfo,
			"no action for a trial: nothing survives the server; to keep records, delete the stream and run turnctl provision")
	}
	if dead != nil {
		// Workers run on a server that was provisioned before tenants had shares of the dead letters.
		fix := "it follows --dead-max-bytes: no action if intended"
		if dead.MaxMsgsPerSubject <= 0 {
			fix = "run turnctl provision: one tenant can evict the dead letters of others"
		}
		when(true, p.dead, "max_msgs_per_subject", diag.SeverityInfo, fix)
	}
	when(inbound != nil && inbound.Duplicates > InDuplicateWindow, p.inbound, "duplicate_window", diag.SeverityInfo,
		"run turnctl provision: the server keeps message ids of that long in memory, of up to 64 KB each")
	return all
}

// expires reports whether the messages of a stream live for less than an age, 0 for no limit.
func (s state) expires(name string, age time.Duration) bool {
	have := s.stream(name)
	return have != nil && have.MaxAge > 0 && (age == 0 || have.MaxAge < age)
}
