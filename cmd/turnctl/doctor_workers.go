package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/subjects"
)

// Workers serve the request API as a NATS service, whose statistics have their state. Doctor requests the
// statistics of all, counts the responses until none follows for answerWait, and groups those that are not ready
// by reason.

const (
	answerWait = 500 * time.Millisecond // for another worker after the last response
	maxAnswers = 1000                   // workers that are counted
	maxReasons = 5                      // that are printed
)

// workers asks all workers through the request API whether they are ready. Only they know the limits of the
// server other than the limit of the account, for example its disk.
func (d *diagnosis) workers(ctx context.Context, s *server) {
	n, reasons, err := s.states(ctx)
	idle := 0
	for _, count := range reasons {
		idle += count
	}
	switch {
	case err != nil:
		d.addf("workers", diag.SeverityWarning, "", "could not check whether workers answer: %v", err)
	case n == 0:
		d.addf("workers", diag.SeverityWarning, "start one: worker --nats URL --workflows DIR", "no worker answers: turns wait in %s", s.space.InStream())
	case idle == 0:
		d.addf("workers", severityOK, "", "%s answered on the request API", plural.Of(n, "worker"))
	}
	severity := diag.SeverityWarning
	if idle == n {
		severity = diag.SeverityError // no worker takes turns
	}
	for i, reason := range slices.Sorted(maps.Keys(reasons)) {
		if i == maxReasons {
			d.addf("workers", severity, "", "and %d other reasons", len(reasons)-maxReasons)
			break
		}
		fix, severity := "see its log, and docs/operations.md", severity
		if strings.Contains(reason, inbox.ErrDraining.Error()) {
			fix, severity = "start another worker if this one does not restart: turns wait until then", diag.SeverityWarning
		}
		d.addf("workers", severity, fix, "%d of %s not ready: %s", reasons[reason], plural.Of(n, "worker"), reason)
	}
}

// states returns how many workers answer, and how many of them are not ready for a reason.
func (s *server) states(ctx context.Context) (n int, reasons map[string]int, err error) {
	subject, err := micro.ControlSubject(micro.StatsVerb, s.space.APIName(), "")
	if err != nil {
		return 0, nil, fmt.Errorf("ask the workers: %w", err)
	}
	sub, err := s.nc.SubscribeSync(subjects.NewInbox(s.nc.Opts.InboxPrefix))
	if err != nil {
		return 0, nil, fmt.Errorf("ask the workers: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection closes soon
	if err := s.nc.PublishRequest(subject, sub.Subject, nil); err != nil {
		return 0, nil, fmt.Errorf("ask the workers: %w", err)
	}
	reasons = map[string]int{}
	for ; n < maxAnswers; n++ {
		wait, cancel := context.WithTimeout(ctx, answerWait)
		m, err := sub.NextMsgWithContext(wait)
		cancel()
		noResponders := err == nil && len(m.Data) == 0 && m.Header.Get("Status") == "503"
		if err != nil || noResponders {
			break
		}
		if reason := notReady(m); reason != "" {
			reasons[reason]++
		}
	}
	return n, reasons, ctx.Err()
}

// notReady reads why a worker is not ready; workers of older releases do not report it.
func notReady(m *nats.Msg) string {
	var stats micro.Stats
	if json.Unmarshal(m.Data, &stats) != nil {
		return ""
	}
	for _, e := range stats.Endpoints {
		var state api.WorkerState
		if json.Unmarshal(e.Data, &state) == nil && state.NotReady != "" {
			return state.NotReady
		}
	}
	return ""
}
