// traces.go exports a span for each call of a tool, if the environment names an OpenTelemetry
// collector. The standard variables of OpenTelemetry configure it: nothing is exported without an
// endpoint, and the exporter reads headers, timeouts and certificates itself. Spans have ids,
// names and codes, never data of a turn. An unreachable collector costs spans, not turns: they
// are exported in batches from a bounded queue, which drops what it has no room for.

package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/throttle"
)

// Variables that decide whether and where spans are exported.
const (
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocolVariable       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocolVariable = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	disabledVariable       = "OTEL_SDK_DISABLED"
)

// flushTimeout bounds the export of the last spans when the worker stops.
const flushTimeout = 3 * time.Second

// traces exports spans. A nil *traces exports nothing.
type traces struct {
	provider *trace.TracerProvider
	endpoint string
	logger   *slog.Logger
}

// newTraces starts the export of spans, or returns nil if the environment does not ask for it.
// Settings that cannot work are logged and export nothing: they are often set for all programs of
// a machine, and a worker is useful without traces.
func newTraces(ctx context.Context, lookup cli.Lookup, logger *slog.Logger) *traces {
	endpoint, err := tracesEndpoint(lookup)
	if err != nil {
		logger.Warn("traces are not exported", "err", err)
		return nil
	}
	if endpoint == "" {
		return nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		logger.Warn("traces are not exported", "err", err)
		return nil
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", clientName), attribute.String("service.version", cli.ReadBuild().Version),
	), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		logger.Warn("a part of the description of this worker is missing in its traces", "err", err)
	}
	var lines throttle.Lines
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		lines.Log(context.Background(), logger, time.Now(), "otlp", "", 1, slog.LevelWarn, "spans were not exported", "err", err)
	}))
	return &traces{
		provider: trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about)),
		endpoint: endpoint, logger: logger,
	}
}

// tracesEndpoint returns the URL to export to, or "" for no export. Credentials belong into
// OTEL_EXPORTER_OTLP_HEADERS: credentials in a URL are not sent, and not printed.
func tracesEndpoint(lookup cli.Lookup) (string, error) {
	value := func(names ...string) (name, value string) {
		for _, name := range names {
			if value, _ := lookup(name); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	name, endpoint := value(tracesEndpointVariable, endpointVariable)
	if _, disabled := value(disabledVariable); endpoint == "" || strings.EqualFold(disabled, "true") {
		return "", nil
	}
	to, err := url.Parse(endpoint)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return "", fmt.Errorf("%s: invalid URL: use for example http://127.0.0.1:4318", name)
	}
	const supported = "http/protobuf"
	if name, protocol := value(tracesProtocolVariable, protocolVariable); cmp.Or(protocol, supported) != supported {
		return "", fmt.Errorf("%s: unsupported protocol %q: use %s, which collectors usually serve on port 4318", name, protocol, supported)
	}
	if name == endpointVariable {
		to = to.JoinPath("v1", "traces")
	}
	to.User = nil
	return to.String(), nil
}

// tracerProvider makes the spans of calls; it is nil if nothing is exported.
func (t *traces) tracerProvider() oteltrace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// url returns where spans go, "" if nothing is exported.
func (t *traces) url() string {
	if t == nil {
		return ""
	}
	return t.endpoint
}

// close exports the last spans, for flushTimeout at most, and ends the export.
func (t *traces) close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.logger.Warn("the last spans were not exported", "err", err)
	}
}
