package natstool_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/oneturntest"
)

const patience = 20 * time.Second

func eventually(t *testing.T, is func() bool, what string) {
	t.Helper()
	require.Eventually(t, is, patience, 5*time.Millisecond, what)
}

// kit is a server with the connections of a worker and of services.
type kit struct {
	*testing.T

	server           *oneturntest.Server
	worker, services *nats.Conn
}

func newKit(t *testing.T) *kit {
	t.Helper()
	s := oneturntest.NewServer(t)
	return &kit{t, s, s.Connect(), s.Connect()}
}

// tool is closed with the test.
func (k *kit) tool(to *target.NATS, change ...func(*natstool.Options)) *natstool.Tool {
	k.Helper()
	o := natstool.Options{Conn: k.worker}
	for _, c := range change {
		c(&o)
	}
	tool := natstool.New(to, o)
	k.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(k.Context()), patience)
		defer cancel()
		require.NoError(k, tool.Close(ctx))
	})
	return tool
}

// serve has a subject answered, each request in a separate goroutine.
func (k *kit) serve(subject string, answer func(m *nats.Msg)) {
	k.Helper()
	_, err := k.services.Subscribe(subject, func(m *nats.Msg) { go answer(m) })
	require.NoError(k, err)
	require.NoError(k, k.services.Flush())
}

// micro adds a service with endpoints of these metadata, by name; all answer with their subject.
func (k *kit) micro(c micro.Config, endpoints map[string]micro.EndpointConfig) micro.Service {
	k.Helper()
	service, err := micro.AddService(k.services, c)
	require.NoError(k, err)
	k.Cleanup(func() { _ = service.Stop() })
	for name, e := range endpoints {
		require.NoError(k, service.AddEndpoint(name, micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(r.Subject()) }),
			micro.WithEndpointSubject(e.Subject), micro.WithEndpointMetadata(e.Metadata)))
	}
	require.NoError(k, k.services.Flush())
	return service
}

func (k *kit) call(args map[string]any) *tools.Call {
	return &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat", Turn: k.Name()}, CallID: k.Name(), Name: "tool", Args: args,
		IdempotencyKey: "key", FencingToken: 1, Epoch: 1, Attempt: 1,
	}
}

func (k *kit) invoke(tool tools.Invoker, call *tools.Call) (tools.Result, error) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	defer cancel()
	return tool.Invoke(ctx, call)
}

// respond answers with headers, in pairs of name and value.
func respond(m *nats.Msg, body string, headers ...string) {
	answer := nats.NewMsg(m.Reply)
	answer.Data = []byte(body)
	for i := 0; i < len(headers); i += 2 {
		answer.Header.Set(headers[i], headers[i+1])
	}
	_ = m.RespondMsg(answer)
}
