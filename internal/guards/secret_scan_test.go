package guards_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
)

// samples are made when the test runs, so that no tool takes this file for a leak.
func samples() map[string]string {
	r := strings.Repeat
	return map[string]string{
		"-----BEGIN " + "PRIVATE KEY-----\nMIIE":                      "a private key",
		"x -----BEGIN RSA " + "PRIVATE KEY-----":                      "a private key",
		"AK" + "IA" + r("A1", 8):                                      "an AWS access key",
		"AS" + "IA" + r("A1", 8):                                      "an AWS access key",
		"token=gh" + "p_" + r("aB3", 12):                              "a GitHub token",
		"github" + "_pat_" + r("aB_3", 15):                            "a GitHub token",
		"gl" + "pat-" + r("aB3x", 5):                                  "a GitLab token",
		"Bearer s" + "k-proj-" + r("aB3x", 8):                         "an API key of a model",
		"xo" + "xb-" + r("12ab", 5):                                   "a Slack token",
		"xa" + "pp-" + r("12ab", 5):                                   "a Slack token",
		"https://hooks.slack" + ".com/services/T0/B0/" + r("aB3x", 6): "a Slack webhook",
		"AI" + "za" + r("aB3_x", 7):                                   "a Google API key",
		"sk_" + "live_" + r("aB3x", 4):                                "a Stripe key",
		"np" + "m_" + r("aB3x", 9):                                    "an npm token",
		"ey" + "JhbGciOiJI.ey" + "JzdWIiOiIx." + r("aB3_", 5):         "a JSON Web Token",
		"SU" + r("AB", 28):                                            "a NATS seed",
		"postgres://app:" + "pass@db/x":                               "a password in a URL",
	}
}

func TestSecretsGuardNamesKindAndPlaceAndNeverTheValue(t *testing.T) {
	t.Parallel()
	for sample, kind := range samples() {
		args, err := events.AppendJSON(nil, map[string]any{"a": "x", "conf": map[string]any{"list/of": []any{"y", sample + " tail"}}})
		require.NoError(t, err)
		got := refusal(t, guards.Declared{Secrets: true}, string(args))
		require.Equal(t, "the arguments may not hold credentials: there is what looks like "+kind+" at /conf/list~1of/1", got, sample)
		require.Equal(t, strings.Replace(got, "the arguments", "the result", 1), outputRefusal(t, guards.Declared{Secrets: true}, `{}`, string(args)))

		key, err := events.AppendJSON(nil, map[string]any{"a": map[string]any{sample: "x"}})
		require.NoError(t, err)
		require.Equal(t, "the arguments may not hold credentials: there is what looks like "+kind+" at /a", refusal(t, guards.Declared{Secrets: true}, string(key)))

		require.Equal(t, "keep keys out of this", refusal(t, guards.Declared{Secrets: true, Message: "keep keys out of this"}, string(args)))
		require.Contains(t, outputRefusal(t, guards.Declared{Secrets: true}, `{}`, string(mustJSON(t, sample))), "looks like "+kind)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := events.AppendJSON(nil, v)
	require.NoError(t, err)
	return text
}

func TestOrdinaryValuesAreNotSecrets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "sk-8", "risk-averse-people-are-everywhere-here", "the PRIVATE KEY----- of nothing", "AKIA is a prefix", "ghost_writers_are_not_tokens_at_all_really",
		"https://example.com/path?x=a:b@c", "mailto:a@example.com", "http://localhost:8080/@user", "SUPERCALIFRAGILISTICEXPIALIDOCIOUS", "eyJhIjoxfQ",
		strings.Repeat("a", 10_000), "-----BEGIN CERTIFICATE-----", "npm_config_loglevel",
	} {
		require.Empty(t, refusal(t, guards.Declared{Secrets: true}, string(mustJSON(t, map[string]any{"text": text, "n": []any{nil, true}}))), text)
	}
	hidden := string(mustJSON(t, map[string]any{strings.Repeat("k", 100): "AK" + "IA" + strings.Repeat("A1", 8)}))
	require.True(t, strings.HasSuffix(refusal(t, guards.Declared{Secrets: true}, hidden), " at /*"), "a long key may itself be anything")
}
