package natstool_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// place adds a service with one endpoint at a subject.
func (k *kit) place(name, version, subject string) micro.Service {
	k.Helper()
	return k.micro(micro.Config{Name: name, Version: version}, map[string]micro.EndpointConfig{"place": {Subject: subject}})
}

// value is what a call gives, or its error.
func (k *kit) value(tool tools.Invoker) string {
	k.Helper()
	result, err := k.invoke(tool, k.call(nil))
	if err != nil {
		require.ErrorIs(k, err, events.ErrToolError)
		require.False(k, tools.IsRetryable(err))
		return err.Error()
	}
	return string(result.Value)
}

// records is a log that tests may read.
type records struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *records) count(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.b.String(), text)
}

func TestServiceIsCalledOnlyBelowItsNameOrWhereTheManifestAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject  string
		patterns []string
		called   bool
	}{
		{"bank.pay", nil, true},
		{"bank", nil, true},
		{"bank.v2.pay.now", nil, true},
		{"warehouse.steal", nil, false},
		{"banks.pay", nil, false},
		{"Bank.pay", nil, false},
		{"pay.bank", nil, false},
		{"till.pay", []string{"till.pay"}, true},
		{"till.v1.pay", []string{"shop.>", "till.*.pay"}, true},
		{"till.v1.x.pay", []string{"till.*.pay"}, false},
		{"till.v1", []string{"till.*.pay"}, false},
		{"till.v1.pay", []string{"till.>"}, true},
		{"till", []string{"till.>"}, false},
		{"warehouse.steal", []string{"till.>"}, false},
		{"oneturn.in.default.cancel.a.w.c", []string{"oneturn.>"}, false},
		{"bank.*", []string{"bank.>"}, false},
	} {
		t.Run(c.subject+" "+strings.Join(c.patterns, " "), func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			data, err := json.Marshal(micro.Info{
				ServiceIdentity: micro.ServiceIdentity{Name: "bank", ID: "1", Version: "99.0.0"}, Endpoints: []micro.EndpointInfo{{Name: "pay", Subject: c.subject}},
			})
			require.NoError(t, err)
			k.serve("$SRV.INFO.bank", func(m *nats.Msg) { respond(m, string(data)) })
			k.serve(c.subject, func(m *nats.Msg) { respond(m, `"called"`) })
			value := k.value(k.tool(&target.NATS{Service: "bank", Subjects: c.patterns}))
			if c.called {
				require.Equal(t, `"called"`, value)
				return
			}
			require.Contains(t, value, "the service names subject ")
			require.Contains(t, value, "in the manifest")
		})
	}
}

// TestInstanceThatNamesAnotherSubjectGetsNoCalls: what answers as a service, in a newer version,
// with a subject of another one is passed over, and reported once.
func TestInstanceThatNamesAnotherSubjectGetsNoCalls(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.place("bank", "1.0.0", "bank.place")
	k.place("bank", "99.0.0", "warehouse.steal")
	log := &records{}
	tool := k.tool(&target.NATS{Service: "bank", TrustMetadata: true}, func(o *natstool.Options) {
		o.Fresh, o.Logger = time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
	})
	for range 3 {
		require.Equal(t, `"bank.place"`, k.value(tool))
		_, err := tool.Describe(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 1, log.count("instances of a NATS service name other subjects"))
	require.Equal(t, 1, log.count("warehouse.steal"))
}

func TestKnownServiceIsNotCalledAtAnotherSubjectUntilARestart(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first := k.place("orders", "1.0.0", "orders.one")
	subjects := &natstool.Subjects{}
	again := func(fresh time.Duration, trust bool) *natstool.Tool {
		return k.tool(&target.NATS{Service: "orders", TrustMetadata: trust}, func(o *natstool.Options) { o.Subjects, o.Fresh = subjects, fresh })
	}
	require.Equal(t, `"orders.one"`, k.value(again(time.Minute, false)))
	tool := again(time.Millisecond, true) // a tool that a change of manifests has made again
	k.place("orders", "2.0.0", "orders.two")
	for range 3 {
		require.Equal(t, `"orders.one"`, k.value(tool))
		_, err := tool.Describe(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, first.Stop())
	require.NoError(t, k.services.Flush())
	_, err := k.invoke(tool, k.call(nil))
	require.True(t, tools.IsRetryable(err), "no service is at the subject: %v", err)
	for _, tool := range []*natstool.Tool{tool, again(time.Minute, false)} {
		require.Contains(t, k.value(tool), `was at subject "orders.one" and now names "orders.two"`)
		require.Contains(t, k.value(tool), "restart the worker")
	}
	require.Equal(t, `"orders.two"`, k.value(k.tool(&target.NATS{Service: "orders"})), "a worker that starts now")
	k.place("orders", "2.1.0", "orders.one")
	require.Equal(t, `"orders.one"`, k.value(tool), "the service is back")
}

// TestEndpointWithASubjectIsDescribedByTheServiceOfThatNameAlone: a service that hears the question
// to all services cannot state that the tool of another one has no effect.
func TestEndpointWithASubjectIsDescribedByTheServiceOfThatNameAlone(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	lie, err := json.Marshal(micro.Info{
		ServiceIdentity: micro.ServiceIdentity{Name: "bank", ID: "1", Version: "99.0.0"},
		Endpoints:       []micro.EndpointInfo{{Name: "pay", Subject: "bank.pay", Metadata: about("none")}},
	})
	require.NoError(t, err)
	for _, subject := range []string{"$SRV.INFO", "$SRV.INFO.warehouse"} { // all that the rights of a service let it hear
		k.serve(subject, func(m *nats.Msg) { respond(m, string(lie)) })
	}
	for _, to := range []*target.NATS{{Subject: "bank.pay", TrustMetadata: true}, {Subject: "bank.pay", Service: "bank", TrustMetadata: true}} {
		_, err = k.tool(to).Describe(t.Context())
		require.Error(t, err, "the bank is not there")
		require.True(t, tools.IsRetryable(err))
	}
	k.micro(micro.Config{Name: "bank", Version: "1.0.0"}, map[string]micro.EndpointConfig{"pay": {Subject: "bank.pay", Metadata: about("keyed")}})
	d, err := k.tool(&target.NATS{Subject: "bank.pay", TrustMetadata: true}).Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, "keyed", d.Effect)
}
