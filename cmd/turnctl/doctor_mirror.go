package main

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/query"
)

// mirror reports how many records the read mirror lacks, and whether histories are read from it. Without one it adds nothing:
// check streams reports one that is planned.
func (d *diagnosis) mirror(ctx context.Context, s *server) {
	name := s.space.TurnsMirror()
	mirror, err := jsapi.Info(ctx, s.nc, name, "", 0)
	if err != nil {
		return
	}
	journal, err := jsapi.Info(ctx, s.nc, s.space.TurnsStream(), "", 0)
	if err != nil {
		return // reported by check streams
	}
	d.Checks = append(d.Checks, mirrorCheckup(name, mirror, journal))
}

// mirrorCheckup checks a mirror by the same rules as the readers of histories.
func mirrorCheckup(name string, mirror, journal *jsapi.InfoPage) checkup {
	c := checkup{Check: "mirror", Severity: diag.SeverityWarning}
	lag := max(int(journal.State.LastSeq)-int(mirror.State.LastSeq), 0) // the journal may have been read before it grew
	switch {
	case !query.IsMirror(mirror, journal):
		c.Message = name + " is not a mirror of this journal that keeps all of its records: histories are read from the journal"
		c.Fix = "run turnctl provision --read-mirror, which reports what is wrong with it"
	case lag > query.MirrorGap:
		c.Message = fmt.Sprintf("%s lacks the last %s of the journal, more than %d: histories are read from the journal", name, plural.Of(lag, "record"), query.MirrorGap)
		c.Fix = "check the server that has it; one that was just created catches up by itself"
	default:
		c.Severity = severityOK
		c.Message = fmt.Sprintf("histories are read from %s, with a lag of %s", name, plural.Of(lag, "record"))
	}
	return c
}
