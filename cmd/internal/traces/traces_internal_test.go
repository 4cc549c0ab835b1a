package traces

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
)

func env(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := pairs[name]; return value, ok }
}

func TestTracesAreExportedOnlyToAUsableEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env        map[string]string
		want, fail string
	}{
		{env: nil},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": ""}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, want: "http://c:4318/v1/traces"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://u:secret@c/otlp/"}, want: "https://c/otlp/v1/traces"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d/x"}, want: "http://d/x"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "True"}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "false"}, want: "http://c/v1/traces"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4318"}, fail: "OTEL_EXPORTER_OTLP_ENDPOINT: invalid URL"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, fail: `unsupported protocol "grpc"`},
	} {
		got, err := endpointOf(env(c.env))
		require.Equal(t, c.want, got, c.env)
		if c.fail == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.fail)
		var log bytes.Buffer
		require.Nil(t, New(t.Context(), "oneturn-test", env(c.env), config.Logger("info", false, &log)))
		require.Contains(t, log.String(), "traces are not exported")
	}
}
