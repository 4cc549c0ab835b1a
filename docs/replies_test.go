package docs_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/accounts"
	"github.com/oneturn/oneturn/subjects"
)

// forged are subjects that the server, a worker or a service could be made to write to by a reply
// subject, if one from outside counted in the product's account.
var forged = []string{
	"$KV.ONETURN_TURNS.e.beta.c1.0-t.0.tool_call", "$KV.ONETURN_TURNS.e.beta.c1.0-t.0.tool_response", "$KV.ONETURN_TURNS.p.beta.c1.0-t.0.park.1",
	"$KV.ONETURN_CONTEXT.beta.c1", "$KV.ONETURN_LIMITS.x", "$KV.ONETURN_WORKFLOWS.x.default", "$O.ONETURN_BLOBS.C.x",
	"oneturn.in.default.structured_output_ready.beta.Notes.c1", "oneturn.in.default.cancel.beta.Notes.c1", "oneturn.in.default.resume.acme.Notes.c1",
	"oneturn.in.nopool.x.y.z.w", "oneturn.dead.beta.x", "oneturn.timer.x", "oneturn.due.x", "oneturn.api.beta.history", "warehouse.stock",
	"$JS.API.STREAM.PURGE.KV_ONETURN_TURNS", "$JS.API.STREAM.DELETE.ONETURN_IN", "$JS.API.STREAM.MSG.DELETE.KV_ONETURN_TURNS",
}

// concrete is a subject that a right allows to publish to.
func concrete(right string) string {
	tokens := strings.Split(right, ".")
	for i, token := range tokens {
		switch token {
		case "*":
			tokens[i] = "x"
		case ">":
			tokens[i] = "W.c"
		}
	}
	return strings.Join(tokens, ".")
}

// victim is a server with two tenants, a worker and records that there are to lose.
type victim struct {
	*secured

	all     []accounts.Account
	js      jetstream.JetStream
	streams []string
	calls   *nats.Subscription // of the service
	other   *nats.Subscription // requests in the product's account for another tenant
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	o := accounts.Options{Tenants: []string{"acme", "beta"}, Services: []string{"warehouse"}}
	v := &victim{secured: securedFor(t, o), streams: []string{"KV_ONETURN_TURNS", "KV_ONETURN_CONTEXT", "KV_ONETURN_LIMITS", "KV_ONETURN_WORKFLOWS", "OBJ_ONETURN_BLOBS", "ONETURN_IN", "ONETURN_TIMERS", "ONETURN_DEAD"}}
	var err error
	o.Space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	v.all, err = accounts.New(o)
	require.NoError(t, err)
	v.run("provisioner", "provision")
	write(t, v.dir, "workflows/Notes/oneturn.yaml", "agents: {A: {}}\n")
	w := launch(t, command(t, v.dir, "worker", v.flags("worker", "--workflows", "workflows", "--http", "off", "--sweep-every", "0s", "--soft-stop", "1s")...), "is ready")
	t.Cleanup(func() { w.end(syscall.SIGTERM) })
	nc, _ := v.connect("provisioner")
	v.js, err = jetstream.New(nc)
	require.NoError(t, err)
	worker, _ := v.connect("worker")
	_, err = worker.Request("$KV.ONETURN_TURNS.e.beta.c.0-t.0.tool_call", []byte("{}"), 5*time.Second)
	require.NoError(t, err)
	_, err = worker.Request("$O.ONETURN_BLOBS.C.x", []byte("chunk"), 5*time.Second)
	require.NoError(t, err)
	service, _ := v.connect("warehouse")
	v.calls, err = service.SubscribeSync("warehouse.>")
	require.NoError(t, err)
	require.NoError(t, service.Flush())
	v.other, err = worker.SubscribeSync("oneturn.api.*.*")
	require.NoError(t, err)
	require.NoError(t, worker.Flush())
	return v
}

// state is what is stored, by subject and last sequence, without what acme may publish itself.
func (v *victim) state() map[string]uint64 {
	v.t.Helper()
	found := map[string]uint64{}
	for _, name := range v.streams {
		stream, err := v.js.Stream(v.t.Context(), name)
		require.NoError(v.t, err, "stream %s", name)
		info, err := stream.Info(v.t.Context(), jetstream.WithSubjectFilter(">"))
		require.NoError(v.t, err)
		for subject := range info.State.Subjects {
			if strings.HasPrefix(subject, "oneturn.in.default.") && strings.Contains(subject, ".acme.") && !strings.Contains(subject, ".resume.") || strings.HasPrefix(subject, "oneturn.dead.acme.") ||
				strings.HasPrefix(subject, "$KV.ONETURN_WORKFLOWS.Notes.") { // which the worker announces
				continue
			}
			m, err := stream.GetLastMsgForSubject(v.t.Context(), subject)
			require.NoError(v.t, err)
			found[subject] = m.Sequence
		}
	}
	return found
}

// TestReplySubjectsOfOutsideRolesReachNothing has each role from outside publish to all that it may
// publish to, with reply subjects of what it may not. Neither the server nor a worker nor a service
// answers there.
func TestReplySubjectsOfOutsideRolesReachNothing(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	before := v.state()
	for _, a := range v.all {
		if a.JetStream {
			continue
		}
		for _, u := range a.Users {
			if a.Name == "TENANT_beta" {
				continue
			}
			nc, denied := v.connect(u.Role)
			for _, right := range u.Publish {
				for _, reply := range forged {
					require.NoError(t, nc.PublishRequest(concrete(right), reply, nil))
					require.NoError(t, nc.PublishRequest(concrete(right), reply, []byte("{}")))
				}
			}
			require.NoError(t, nc.Flush())
			require.Empty(t, denied.list(), "%s may do what is tried", u.Name)
			honest(t, nc, u.Publish)
		}
	}
	require.Equal(t, before, v.state())
	_, err := v.calls.NextMsg(time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout, "a service was called")
	for m, err := v.other.NextMsg(time.Millisecond); err == nil; m, err = v.other.NextMsg(time.Millisecond) {
		require.NotContains(t, m.Subject, ".beta.")
	}
}

// honest sends a request with an inbox, which is answered after all that was sent before.
func honest(t *testing.T, nc *nats.Conn, rights []string) {
	t.Helper()
	for _, right := range rights {
		_, err := nc.Request(concrete(right), []byte("{}"), 20*time.Second)
		require.NoError(t, err, "%s", right)
	}
}

// TestReplySubjectsOfServicesReachNothing: a service is in the product's account, but no stream
// takes what it may publish.
func TestReplySubjectsOfServicesReachNothing(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	before := v.state()
	nc, denied := v.connect("warehouse")
	for _, u := range v.all[0].Users {
		if u.Role != "warehouse" {
			continue
		}
		for _, right := range u.Publish {
			for _, reply := range forged {
				require.NoError(t, nc.PublishRequest(concrete(right), reply, []byte("{}")))
			}
		}
	}
	require.NoError(t, nc.Flush())
	require.Empty(t, denied.list())
	_, err := nc.Request("_INBOX_worker_tools.x.y", nil, 5*time.Second)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	require.Equal(t, before, v.state())
}

// TestPoolsWithoutConsumersTakeNoMessages: neither a right nor an export has another pool.
func TestPoolsWithoutConsumersTakeNoMessages(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	for _, role := range []string{"publisher", "answerer", "reader", "fetcher", "inspector", "operator"} {
		nc, denied := v.connect(role)
		denies(t, nc, denied, func(subject string) error { return nc.PublishRequest(subject, "oneturn.in.nopool.x.y.z.w", nil) },
			"oneturn.in.nopool.structured_output_ready.acme.W.c", "oneturn.in.nopool.cancel.acme.W.c", "oneturn.in.nopool.tool_call_response.acme.W.c",
			"oneturn.in.default.resume.acme.W.c", "oneturn.in.default.expire.acme.W.c", "oneturn.in.default.x.acme.W.c")
	}
	for subject := range v.state() {
		require.NotContains(t, subject, "nopool")
	}
}

// TestTenantCannotReachAnotherWithoutItsRights: what the accounts keep apart does not depend on the
// rights of users, as in a tenant that makes users itself.
func TestTenantCannotReachAnotherWithoutItsRights(t *testing.T) {
	t.Parallel()
	s := securedFor(t, accounts.Options{Tenants: []string{"acme", "beta"}}, func(config string) string {
		before, rest, ok := strings.Cut(config, `{ user: "acme-publisher", password: "acme-publisher", permissions: {`)
		require.True(t, ok)
		_, after, ok := strings.Cut(rest, "} }")
		require.True(t, ok)
		return before + `{ user: "acme-publisher", password: "acme-publisher" }` + after
	})
	s.run("provisioner", "provision")
	nc, denied := s.connect("publisher")
	for _, subject := range append([]string{
		"oneturn.in.default.structured_output_ready.beta.Notes.c1", "oneturn.in.default.resume.acme.Notes.c1", "oneturn.in.default.expire.acme.Notes.c1",
		"oneturn.api.beta.turn", "oneturn.events.beta.c.t.0.tool_response", "$JS.API.STREAM.INFO.ONETURN_IN", "oneturn.verdict.beta.x",
	}, forged...) {
		m, err := nc.Request(subject, []byte("{}"), 5*time.Second)
		if strings.HasPrefix(subject, "$JS.") {
			require.NoError(t, err)
			require.Contains(t, string(m.Data), "JetStream not enabled for account", "the account of the tenant has none")
			continue
		}
		require.ErrorIs(t, err, nats.ErrNoResponders, "%s", subject)
	}
	require.Empty(t, denied.list())
	all, err := nc.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	worker, _ := s.connect("worker")
	for _, subject := range []string{
		"$KV.ONETURN_TURNS.e.beta.c.0-t.0.tool_call", "$KV.ONETURN_TURNS.p.acme.c.0-t.0.park.1", "$KV.ONETURN_TURNS.e.acme.c.0-t.0.tool_call",
		"$KV.ONETURN_CONTEXT.acme.c",
	} {
		_, err := worker.Request(subject, []byte("{}"), 5*time.Second)
		require.NoError(t, err)
	}
	for _, subject := range []string{"oneturn.live.beta.c.x", "oneturn.verdict.beta.x", "oneturn.live.acme.c.last"} {
		require.NoError(t, worker.Publish(subject, nil))
	}
	var seen []string
	for len(seen) == 0 || seen[len(seen)-1] != "oneturn.live.acme.c.last" {
		m, err := all.NextMsg(5 * time.Second)
		require.NoError(t, err, "%v", seen)
		seen = append(seen, m.Subject)
	}
	require.Equal(t, []string{"oneturn.events.acme.c.0-t.0.tool_call", "oneturn.live.acme.c.last"}, seen)
}

// TestConfigurationOfThePageIsWhatTheCommandPrints, and it is what the other tests run with.
func TestConfigurationOfThePageIsWhatTheCommandPrints(t *testing.T) {
	t.Parallel()
	out, code := output(t, command(t, t.TempDir(), "turnctl", "nats-config", "--tenants", "acme"))
	require.Zero(t, code, out)
	require.Equal(t, out, fenced(t, "operations.md", "conf")[0].text)
	out, code = output(t, command(t, t.TempDir(), "turnctl", "nats-config", "--tenants", "acme", "--services", "warehouse"))
	require.Zero(t, code, out)
	for _, b := range fenced(t, "nats-services.md", "conf") {
		require.Contains(t, out, b.text)
	}
}
