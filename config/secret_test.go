package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
)

func TestSecretsAppearNowhere(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-5f1e"
	cfg := config.Worker{ListenPassword: canary}
	cfg.URL = config.URL("nats://user:" + canary + "@a:4222,nats://" + canary + "@b:4222," + canary + "@c,nats://u:p@" + canary + "@d")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		require.NotContains(t, fmt.Sprintf(verb, cfg), canary, verb)
		require.NotContains(t, fmt.Sprintf(verb, &cfg), canary, verb)
		require.NotContains(t, fmt.Sprintf(verb, cfg.ListenPassword), canary, verb)
		require.NotContains(t, fmt.Sprintf(verb, cfg.URL), canary, verb)
	}
	data, err := json.Marshal([]any{cfg.URL, cfg.ListenPassword})
	require.NoError(t, err)
	require.NotContains(t, string(data), canary)
	for _, asJSON := range []bool{false, true} {
		var log bytes.Buffer
		config.Logger("debug", asJSON, &log).Info("x", "config", cfg, "url", cfg.URL, "password", cfg.ListenPassword)
		require.NotContains(t, log.String(), canary)
		require.Contains(t, log.String(), "a:4222")
	}
	require.Equal(t, "nats://a:4222,nats://b:4222,c,nats://d", cfg.URL.String())
}

func TestWrongSecretsAreNotRepeated(t *testing.T) {
	t.Parallel()
	_, err := load[config.Worker](t, []string{"--listen-password=CANARY", "--nats=nats://u:CANARY@a", "--slots=x"}, nil)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "CANARY")
}

func TestSizesAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	for text, size := range map[string]config.Bytes{
		"-1": -1, "0": 0, "1": 1, "1000": 1000, "1KiB": 1024, "512MiB": 512 << 20, "10GB": 1e10, "3TiB": 3 << 40, "1025": 1025,
	} {
		p, err := load[config.Provision](t, []string{"--in-max-bytes", text}, nil)
		require.NoError(t, err)
		require.Equal(t, size, p.InMaxBytes)
		back, err := load[config.Provision](t, []string{"--in-max-bytes", size.String()}, nil)
		require.NoError(t, err)
		require.Equal(t, size, back.InMaxBytes, size.String())
	}
	for _, text := range []string{"", "-2", "-1MB", "9223372036854775807KiB", "1.5GB", "MB", "1e3"} {
		_, err := load[config.Provision](t, []string{"--in-max-bytes", text}, nil)
		require.Error(t, err, text)
	}
}

func TestLoggerKeepsItsLevelAndEscapesHostileText(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := config.Logger("warn", false, &log)
	logger.Info("quiet")
	require.Empty(t, log.String())
	logger.Warn("loud", "id", "a\nlevel=ERROR msg=forged")
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")))

	log.Reset()
	config.Logger("nonsense", true, &log).Info("shown")
	require.True(t, json.Valid(log.Bytes()))
}
