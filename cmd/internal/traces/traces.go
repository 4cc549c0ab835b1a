// Package traces exports the spans of a command, if the environment names an OpenTelemetry
// collector. The standard variables of OpenTelemetry configure it: nothing is exported without an
// endpoint, and the exporter reads headers, timeouts and certificates itself. Spans have ids,
// names and codes, never data of a turn. An unreachable collector costs spans, not turns: they
// are exported in batches from a bounded queue, which drops what it has no room for.
package traces

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

// FlushTimeout bounds the export of the last spans when a command stops.
const FlushTimeout = 3 * time.Second

// Exporter exports spans. A nil *Exporter exports nothing.
type Exporter struct {
	provider *trace.TracerProvider
	endpoint string
	logger   *slog.Logger
}

// New starts the export of the spans of a service, or returns nil if the environment does not ask for it.
// Settings that cannot work are logged and export nothing: they are often set for all programs of
// a machine, and a command is useful without traces.
func New(ctx context.Context, service string, lookup cli.Lookup, logger *slog.Logger) *Exporter {
	endpoint, err := endpointOf(lookup)
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
		attribute.String("service.name", service), attribute.String("service.version", cli.ReadBuild().Version),
	), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		logger.Warn("a part of the description of this program is missing in its traces", "err", err)
	}
	var lines throttle.Lines
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		lines.Log(context.Background(), logger, time.Now(), "otlp", "", 1, slog.LevelWarn, "spans were not exported", "err", err)
	}))
	return &Exporter{
		provider: trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about)),
		endpoint: endpoint, logger: logger,
	}
}

// endpointOf returns the URL to export to, or "" for no export. Credentials belong in
// OTEL_EXPORTER_OTLP_HEADERS: credentials in a URL are not sent, and not printed.
func endpointOf(lookup cli.Lookup) (string, error) {
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

// Provider returns what makes the spans, nil if nothing is exported.
func (e *Exporter) Provider() oteltrace.TracerProvider {
	if e == nil {
		return nil
	}
	return e.provider
}

// URL returns the address that spans are sent to, without credentials, "" if nothing is exported.
func (e *Exporter) URL() string {
	if e == nil {
		return ""
	}
	return e.endpoint
}

// Close exports the last spans, for [FlushTimeout] at most, and ends the export.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), FlushTimeout)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		e.logger.Warn("the last spans were not exported", "err", err)
	}
}
