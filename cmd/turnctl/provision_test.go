package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
)

func TestProvisionMakesWhatIsMissingAndDoctorAgrees(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)

	require.NotContains(t, ok(t, s, "provision", "--dry-run", "-o", "json"), "tier")
	dry := ok(t, s, "provision", "--dry-run")
	require.Contains(t, dry, "would create  stream ONETURN_IN\n")
	code, stdout, _ := turnctl(t, s, "doctor")
	require.Equal(t, cli.Failed, code, "a dry run has made nothing")
	require.Contains(t, stdout, "stream ONETURN_IN is missing")
	require.Contains(t, stdout, "fix: run turnctl provision\n")
	_, stdout, _ = turnctl(t, s, "doctor", "--pools", "default,gpu", "--prefix", "other")
	require.Contains(t, stdout, "fix: run turnctl provision --prefix other --pools default,gpu\n")
	require.Contains(t, stdout, "something is broken")

	text := ok(t, s, "provision")
	require.Contains(t, text, "created  stream ONETURN_IN\n")
	require.Contains(t, text, "created  consumer ONETURN_IN/workers-default\n")
	require.Contains(t, text, "durability single: ")
	p := decode[provisioned](t, s, "provision")
	require.NotEmpty(t, p.Changes)
	for _, c := range p.Changes {
		require.Equal(t, provision.Unchanged, c.Action, c.Object)
	}
	require.Equal(t, "single", p.Tier.Name)
	require.Contains(t, ok(t, s, "provision", "--dry-run"), "nothing would change")

	require.Contains(t, ok(t, s, "provision", "--ack-wait", "45s"), "ack_wait 30s → 45s")
	p = decode[provisioned](t, s, "provision", "--dry-run")
	require.True(t, p.DryRun)
	require.Empty(t, p.Changes)
	require.Equal(t, "ack_wait", p.Findings[0].Setting)
	require.Contains(t, p.Findings[0].Fix, "it is not the default: no action if intended")
	require.Equal(t, "single", p.Tier.Name)

	code, stdout, stderr := turnctl(t, s, "provision", "--memory")
	require.Equal(t, cli.Failed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "refused")
}

func TestDoctorFindsAHealthyServerHealthy(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	d.publish(t, turnID("c", "", "t"), "Ada") // the worker is up
	require.Equal(t, `ok reach URL, round trip N ms
ok version NATS server VERSION, at least `+provision.MinServer+` is needed
ok jetstream SIZE stored; the account has no limit, only the disk limits it
ok streams streams, buckets and consumers are as planned
info queue pool default: 0 messages waiting, N in work, 0 of them delivered again
ok dead no dead letters
ok unread every message is for a pool that has a consumer
ok clock this machine and the server agree within 5s
ok workers 1 worker answered on the request API
info durability single: Records are on one server: they survive its crash; a power loss may
 take the last two minutes. How the servers sync cannot be seen from here: with
 sync_interval: always nothing is lost. This is the embedded server of a worker,
 which prints the tier at its start: embedded or single-sync.
nothing is broken
`, normal(ok(t, d.Server, "doctor", "--ack-wait", "1s")))

	diagnosis := decode[diagnosis](t, d.Server, "doctor")
	require.True(t, diagnosis.Healthy, "another ack wait is not an error")
	require.Equal(t, "single", diagnosis.Tier.Name)
}

func TestDoctorReportsThatNoWorkerAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	text := ok(t, s, "doctor")
	require.Contains(t, text, "warning  workers     no worker answers: turns wait in ONETURN_IN")
}

func TestDoctorFindsMessagesThatNoWorkerTakes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, subject := range []string{
		"oneturn.in.default.structured_output_ready.app.W.c", // waits for a worker
		"oneturn.in.nopool.structured_output_ready.app.W.c", "oneturn.in.nopool.structured_output_ready.app.W.c", "oneturn.in.default",
	} {
		_, err := s.Connect().Request(subject, []byte("{}"), 5*time.Second)
		require.NoError(t, err)
	}
	unread := func() checkup {
		checks := decode[diagnosis](t, s, "doctor").Checks
		return checks[slices.IndexFunc(checks, func(c checkup) bool { return c.Check == "unread" })]
	}
	found := unread()
	require.Equal(t, diag.SeverityWarning, found.Severity)
	require.Equal(t, "3 messages in ONETURN_IN that no consumer takes: oneturn.in.default, "+
		"oneturn.in.nopool.structured_output_ready.app.W.c", found.Message)
	require.Contains(t, found.Fix, "turnctl provision --pools nopool")

	require.Contains(t, ok(t, s, "doctor"), "messages wait for pool default, and no worker pulls from it")

	ok(t, s, "provision", "--pools", "default,nopool")
	require.Contains(t, ok(t, s, "doctor"), "messages wait for pool nopool, and no worker pulls from it")
	require.Contains(t, unread().Message, "1 message in ONETURN_IN")
}
