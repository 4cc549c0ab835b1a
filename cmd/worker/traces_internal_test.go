package main

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/traces"
)

// receiver is an OTLP/HTTP collector that keeps what it gets.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*collector.ExportTraceServiceRequest
	paths    []string
	bodies   []byte
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := io.Reader(req.Body)
		if req.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		data, err := io.ReadAll(body)
		got := &collector.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(data, got)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests, r.paths, r.bodies = append(r.requests, got), append(r.paths, req.URL.Path), append(r.bodies, data...)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

func env(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := pairs[name]; return value, ok }
}

// publishTraced publishes a turn with a traceparent.
func publishTraced(t *testing.T, w *running, model, data string) {
	t.Helper()
	nc, err := nats.Connect(w.start.NATS)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	m := nats.NewMsg(strings.NewReplacer("<app>", "default", "<workflow>", "Hello", "<chat>", "hello").Replace(w.start.Publish))
	m.Data = []byte(`{"kind":"structured_output_ready","agent_name":"Greeter","model_name":"` + model + `","auto_tool_mode":true,` +
		`"turn_idempotency_key":"t1","structured_data":` + data + `,"context":{"chat_id":"hello","workflow_name":"Hello"}}`)
	m.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.NoError(t, nc.PublishMsg(m))
}

// awaitTraced returns the response of that turn.
func awaitTraced(t *testing.T, w *running) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := client(t, w.start.NATS).Await(ctx, oneturn.TurnID{App: "default", Chat: "hello", Turn: "t1"})
	require.NoError(t, err)
	return r
}

// doTraced publishes a turn that succeeds and returns its response.
func doTraced(t *testing.T, w *running) *oneturn.Response {
	t.Helper()
	publishTraced(t, w, "Greeting", `{"name":"Canary","language":"fr"}`)
	r := awaitTraced(t, w)
	require.True(t, r.Success, r.Content)
	return r
}

func TestSpansOfCallsAreExportedToTheCollectorBeforeTheWorkerEnds(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w := launchWith(t, env(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL}), embeddedArgs(t, hello)...)
	require.Equal(t, r.URL+"/v1/traces", w.start.Traces)
	require.Equal(t, "Bonjour, Canary!", doTraced(t, w).Content)
	require.Zero(t, w.stop(), w.stderr)

	r.mu.Lock()
	defer r.mu.Unlock()
	require.NotEmpty(t, r.requests)
	require.Equal(t, "/v1/traces", r.paths[0])
	spans := r.requests[0].GetResourceSpans()[0]
	require.Equal(t, "oneturn-worker", attributesOf(spans.GetResource().GetAttributes())["service.name"])
	span := spans.GetScopeSpans()[0].GetSpans()[0]
	require.Equal(t, "tool greet", span.GetName())
	require.Equal(t, []byte{0x0a, 0xf7, 0x65, 0x19}, span.GetTraceId()[:4], "the trace of the turn")
	var phases []string
	for _, e := range span.GetEvents() {
		phases = append(phases, e.GetName())
	}
	require.Contains(t, phases, "tool.invoke.ok")
	require.NotContains(t, string(r.bodies), "Canary", "no data of the turn")
}

// attributesOf returns attributes as text, by their names.
func attributesOf(all []*common.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range all {
		texts[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return texts
}

func TestSpansOfAProgramReachTheCollectorWithTheirSteps(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	root := t.TempDir()
	for name, text := range map[string]string{
		"oneturn.yaml": "agents: {Greeter: {}}\ntools:\n- {name: run_plan, kind: plan, agent: Greeter, uses: [find, reserve]}\n" +
			"- {name: find, file: t.py, auto: false, effect: none, output: {type: object, properties: {hotel: {type: string}}}}\n" +
			"- {name: reserve, file: t.py, auto: false, input: {type: object, properties: {hotel: {type: string}}}}\n",
		"tools/t.py": "def find(): return {\"hotel\": \"Canary\"}\ndef reserve(hotel): raise ValueError(\"full\")\n",
	} {
		path := filepath.Join(root, "Hello", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	w := launchWith(t, env(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL}), embeddedArgs(t, root)...)
	publishTraced(t, w, "", `{"type":"tool_calls","calls":[{"tool_name":"find","arguments":{}},{"tool_name":"reserve","arguments":{"hotel":"$0.output.hotel"}}]}`)
	response := awaitTraced(t, w)
	require.False(t, response.Success)
	require.Zero(t, w.stop(), w.stderr)

	r.mu.Lock()
	defer r.mu.Unlock()
	spans := map[string]*trace.Span{}
	for _, request := range r.requests {
		for _, span := range request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
			require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(span.GetTraceId()), "the trace of the turn")
			spans[span.GetName()] = span
		}
	}
	require.Len(t, spans, 3)
	program := spans["tool run_plan"]
	require.Equal(t, "b7ad6b7169203331", hex.EncodeToString(program.GetParentSpanId()))
	for name, want := range map[string][3]string{"tool find": {"t1#0", "none", ""}, "tool reserve": {"t1#1", "unsafe", "user_error"}, "tool run_plan": {"t1", "program", "user_error"}} {
		about := attributesOf(spans[name].GetAttributes())
		require.Equal(t, want, [3]string{about["oneturn.call"], about["oneturn.effect"], about["oneturn.code"]}, name)
		require.Equal(t, "Hello", about["oneturn.workflow"], name)
		if name != "tool run_plan" {
			require.Equal(t, program.GetSpanId(), spans[name].GetParentSpanId(), name)
		}
	}
	var states []string
	for _, e := range program.GetEvents() {
		if e.GetName() == "program.state" {
			about := attributesOf(e.GetAttributes())
			states = append(states, strings.TrimSpace(about["state"]+" "+about["step"]))
		}
	}
	require.Subset(t, states, []string{"dispatching_step 0", "awaiting_results 0", "dispatching_step 1"})
	require.NotContains(t, string(r.bodies), "Canary", "no data of the turn")
}

func TestWorkerDoesNotWaitForACollectorThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(func() { close(hang); s.Close() })
	w := launchWith(t, env(map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": s.URL + "/spans"}), embeddedArgs(t, hello)...)
	require.Equal(t, s.URL+"/spans", w.start.Traces)
	doTraced(t, w)
	begin := time.Now()
	require.Zero(t, w.stop(), w.stderr)
	require.Less(t, time.Since(begin), 3*traces.FlushTimeout)
	require.Contains(t, w.stderr.String(), "the last spans were not exported")
}
