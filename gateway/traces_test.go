package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/traceparent"
)

const (
	browserTrace = "0af7651916cd43dd8448eb211c80319c"
	browserSpan  = "b7ad6b7169203331"
	browser      = "00-" + browserTrace + "-" + browserSpan + "-01"
)

// openTraced starts a gateway and a worker that report their spans to an exporter.
func openTraced(t *testing.T) (*gate, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	g := open(t, func(o *gateway.Options) { o.TracerProvider = provider })
	c := shop()
	c.TracerProvider = provider
	harness.StartWorker(t, g.server, c)
	return g, exporter
}

// spanOf waits for the end of a span.
func spanOf(t *testing.T, exporter *tracetest.InMemoryExporter, name string) (found tracetest.SpanStub) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range exporter.GetSpans() {
			if s.Name == name {
				found = s
				return true
			}
		}
		return false
	}, 20*time.Second, 5*time.Millisecond, name)
	return found
}

func attributesOf(s tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// subscribe receives what is published on a subject.
func (g *gate) subscribe(subject string) *nats.Subscription {
	g.Helper()
	sub, err := g.nc.SubscribeSync(subject)
	require.NoError(g, err)
	require.NoError(g, g.nc.Flush())
	return sub
}

// next is the next message of a kind of event.
func next(t *testing.T, sub *nats.Subscription, kind string) *nats.Msg {
	t.Helper()
	for {
		m, err := sub.NextMsg(20 * time.Second)
		require.NoError(t, err, kind)
		if strings.Contains(string(m.Data), `"type":"chat.`+kind+`"`) {
			return m
		}
	}
}

func TestOneTraceLeadsFromTheBrowserToTheToolAndItsResponse(t *testing.T) {
	t.Parallel()
	g, exporter := openTraced(t)
	sub := g.subscribe("oneturn.events.>")
	s := g.socket("ada", "c", "")
	s.until("chat.resume_boundary")
	s.send(map[string]any{"type": "user.input.submit", "text": "one, please", "message_id": "m1", "traceparent": browser})
	s.until("ack.input")

	// An orchestrator takes the message up.
	written := next(t, sub, events.KindUserMessage)
	turn := &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "c", Turn: "t1"}, Workflow: "Shop", Agent: "Pieces", Model: "Pieces", UserID: "ada", Data: map[string]any{"count": 1},
	}
	_, err := g.client.Publish(traceparent.With(t.Context(), written.Header.Get(traceparent.Header)), turn)
	require.NoError(t, err)
	response := next(t, sub, events.KindToolResponse)

	message, tool := spanOf(t, exporter, "gateway ws message"), spanOf(t, exporter, "tool pieces")
	require.Equal(t, browserTrace, message.SpanContext.TraceID().String())
	require.Equal(t, browserSpan, message.Parent.SpanID().String())
	require.Equal(t, trace.SpanKindServer, message.SpanKind)
	require.Equal(t, map[string]string{"oneturn.door": "ws", "oneturn.frame": "message", "http.response.status_code": "200", "oneturn.code": "accepted"}, attributesOf(message))
	require.Equal(t, browserTrace, tool.SpanContext.TraceID().String())
	require.Equal(t, message.SpanContext.SpanID(), tool.Parent.SpanID())
	ended, ok := traceparent.Parse(response.Header.Get(traceparent.Header))
	require.True(t, ok)
	require.Equal(t, browserTrace, ended.TraceID().String())
}

func TestAnswersAndCancelRequestsContinueTheTraceOfTheirRequest(t *testing.T) {
	t.Parallel()
	g, exporter := openTraced(t)
	question := g.ask()
	g.turn("c", "w", "ada", "Waiter", "Order", map[string]any{"item": "lamp"})
	require.Eventually(t, func() bool {
		return strings.Contains(string(g.get("ada", "/api/chats/app/c/events").body), `"turn":"w"`)
	}, 20*time.Second, 20*time.Millisecond)
	sub := g.subscribe("oneturn.in.>")
	for _, c := range []struct {
		span, path string
		body       map[string]any
		code       int
	}{
		{"gateway respond", respondPath, answerTo(question, "approved"), http.StatusOK},
		{"gateway cancel", "/api/chats/app/c/cancel", map[string]any{"turn": "w"}, http.StatusAccepted},
	} {
		data := events.JSONOf(c.body)
		r := g.do("POST", "ada", c.path, data, "Traceparent", browser)
		require.Equal(t, c.code, r.status, string(r.body))
		span := spanOf(t, exporter, c.span)
		require.Equal(t, browserTrace, span.SpanContext.TraceID().String())
		require.Equal(t, browserSpan, span.Parent.SpanID().String())
		require.Equal(t, strconv.Itoa(c.code), attributesOf(span)["http.response.status_code"])
		m, err := sub.NextMsg(20 * time.Second)
		require.NoError(t, err)
		require.Equal(t, traceparent.Format(span.SpanContext), m.Header.Get(traceparent.Header))
	}
	s := g.socket("ada", "c", "")
	s.send(map[string]any{"type": "chat.tool_call_response", "data": map[string]any{
		"tool_call_id": question, "response": map[string]any{"status": "rejected"}, "traceparent": browser,
	}})
	s.until("ack.tool_call_response")
	span := spanOf(t, exporter, "gateway ws answer")
	require.Equal(t, browserSpan, span.Parent.SpanID().String())
	require.Equal(t, "409", attributesOf(span)["http.response.status_code"])
}

func TestSpanOfARunIsTheParentOfItsMessage(t *testing.T) {
	t.Parallel()
	g, exporter := openTraced(t)
	g.lists(g.http.URL)
	sub := g.subscribe("oneturn.in.default.user_message.>")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.http.URL+"/agui/Shop", bytes.NewReader(events.JSONOf(input("r1", nil, "hello"))))
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer ada"}, "Content-Type": {"application/json"}, "Traceparent": {browser}}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	m, err := sub.NextMsg(20 * time.Second)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	span := spanOf(t, exporter, "gateway agui_run")
	require.Equal(t, browserSpan, span.Parent.SpanID().String())
	require.Equal(t, traceparent.Format(span.SpanContext), m.Header.Get(traceparent.Header))
}

func TestSpansHaveNoIDsAndNameTheReasonOfARefusal(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	g := open(t, func(o *gateway.Options) { o.TracerProvider = sdk.NewTracerProvider(sdk.WithSyncer(exporter)) })
	g.get("ada", "/api/chats/app/canary/events?after=x&canary=1", "Traceparent", "canary")
	g.get("canary", "/api/chats/app/canary/waits", "Traceparent", browser[:50])
	g.get("ada", "/api/chats/canary/c/blobs/canary")
	g.get("ada", "/canary")
	want := map[string]string{"gateway events": "400 bad_cursor", "gateway waits": "401 token_invalid", "gateway blobs": "403 forbidden"}
	for name, refusal := range want {
		span := spanOf(t, exporter, name)
		about := attributesOf(span)
		require.Equal(t, refusal, about["http.response.status_code"]+" "+about["oneturn.code"])
		require.False(t, span.Parent.IsValid(), name)
		require.NotContains(t, fmt.Sprint(span), "canary")
	}
	require.Len(t, exporter.GetSpans(), len(want), "a path without an endpoint has no span")
}

func TestSpanOfAStreamEndsWhenTheStreamBegins(t *testing.T) {
	t.Parallel()
	g, exporter := openTraced(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.http.URL+"/api/chats/app/c/events", http.NoBody)
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer ada"}, "Accept": {"text/event-stream"}}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	spanOf(t, exporter, "gateway events")
	require.NoError(t, got.Body.Close())
}

func TestTraceOfTheClientPassesThroughAGatewayThatReportsNoSpans(t *testing.T) {
	t.Parallel()
	g := open(t)
	sub := g.subscribe("oneturn.in.>")
	s := g.socket("ada", "c", "")
	s.send(map[string]any{"type": "user.input.submit", "text": "hello", "traceparent": browser})
	s.until("ack.input")
	m, err := sub.NextMsg(20 * time.Second)
	require.NoError(t, err)
	require.Equal(t, browser, m.Header.Get(traceparent.Header))
}
