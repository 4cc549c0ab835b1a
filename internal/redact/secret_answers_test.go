package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/redact"
)

// withAnswer returns SecretAnswers that have one answer.
func withAnswer(tb testing.TB, answer any, question string) *redact.SecretAnswers {
	tb.Helper()
	data, err := json.Marshal(answer)
	require.NoError(tb, err)
	var s redact.SecretAnswers
	require.False(tb, s.Active())
	s.AddSecret(data, []byte(question))
	return &s
}

func TestAnswerIsFoundInEveryFormThatProgramsWrite(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"swordfish-4711", `quote " and ' and \ and <tag>&`, "tab\tand ünïcödé 🗝", "a/b+c=d?e&f g%h",
		"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nAQEFAASCBKcwggSjAgEA\n-----END KEY-----",
	} {
		s := withAnswer(t, map[string]any{"data": map[string]any{"fields": []any{"  " + secret + "\n"}}}, "")
		plain, err := json.Marshal(secret)
		require.NoError(t, err)
		for name, form := range map[string]string{
			"as it is": secret, "JSON": string(plain[1 : len(plain)-1]), "query": url.QueryEscape(secret), "path": url.PathEscape(secret),
			"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "URL base64": base64.RawURLEncoding.EncodeToString([]byte(secret)),
			"hex": fmt.Sprintf("%x", secret), "quoted JSON": string(must(json.Marshal(string(plain)))),
		} {
			got := s.Text("before " + form + " after")
			require.Contains(t, got, redact.Replacement, name)
			require.NotContains(t, got, form, name)
			require.True(t, strings.HasPrefix(got, "before ") && strings.HasSuffix(got, " after"), "%s: %s", name, got)
		}
		for _, user := range []string{"", "u:", "us:", "use:"} { // as in Basic authentication
			encoded := base64.StdEncoding.EncodeToString([]byte(user + secret + "!"))
			got := s.Text(encoded)
			require.Contains(t, got, redact.Replacement)
			require.Less(t, len(strings.ReplaceAll(got, redact.Replacement, "")), 12, "%s", got)
		}
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestJSONStaysJSONAndLosesItsSecrets(t *testing.T) {
	t.Parallel()
	s := withAnswer(t, map[string]any{"key": "swordfish", "pin": 4711, "yes": "y", "status": "submitted", "agree": true}, "")
	for in, want := range map[string]string{
		`{"status":"submitted","used":"swordfish"}`:               `{"status":"submitted","used":"[secret]"}`,
		`["a swordfish b",4711,"4711",47110,"y","yes",true,null]`: `["a [secret] b","[secret]","[secret]",47110,"[secret]","yes",true,null]`,
		`{"swordfish":1,"y":2}`:                                   `{"[secret]":1,"y":2}`,
		`"\u0073wordfish"`:                                        `"[secret]"`,
		`{"a":1,"a":2}`:                                           `"[secret]"`, // its meaning is undefined
		`{"deep":[[["{\"k\":\"swordfish\"}"]]]}`:                  `{"deep":[[["{\"k\":\"[secret]\"}"]]]}`,
	} {
		require.JSONEq(t, want, string(s.JSON(json.RawMessage(in))), in)
	}
}

func TestNamesOfEntriesAreSecretsUnlessTheyReadLikeFields(t *testing.T) {
	t.Parallel()
	s := withAnswer(t, map[string]any{"sk-abcdef": true, "data": map[string]any{"api_key": "swordfish", "hunter22": 1, "line_2": "x-y-z", "my-field": true}},
		`{"fields":[{"name":"my-field"}]}`)
	require.Equal(t, "api_key line_2 my-field data [secret] [secret]", s.Text("api_key line_2 my-field data sk-abcdef hunter22"))
	require.JSONEq(t, `{"api_key":"[secret]","[secret]":true}`, string(s.JSON(json.RawMessage(`{"api_key":"swordfish","sk-abcdef":true}`))))

	all := withAnswer(t, strings.Repeat("x", 20_000), "")
	require.JSONEq(t, `{"api_key":"[secret]","[secret]":"[secret]"}`, string(all.JSON(json.RawMessage(`{"api_key":"a","sk-abcdef":"b"}`))))
}

func TestWordsOfTheQuestionAreNotSecrets(t *testing.T) {
	t.Parallel()
	s := withAnswer(t, map[string]any{"service": "openai", "agent_message_id": "8d7f-1", "data": map[string]any{"key": "swordfish"}},
		`{"services":["openai","anthropic"],"agent_message":"Please"}`)
	require.Equal(t, "openai 8d7f-1 [secret]", s.Text("openai 8d7f-1 swordfish"))
}

func TestOverlappingSecretsAreRedactedTogether(t *testing.T) {
	t.Parallel()
	s := withAnswer(t, []string{"abcdef", "defghi", "ghij-long-one", "zzzz", "bcdefg and the rest of it"}, "")
	require.Equal(t, "-[secret]-", s.Text("-abcdefghij-long-one-"))
	require.Equal(t, "[secret]", s.Text("zzzzzzzzz"))
	require.Equal(t, s.Text("x zzzz"), s.Text(s.Text("x zzzz")))
	late := withAnswer(t, []string{"aaaa", "bbbb", "aa..bbbb!"}, "")
	require.NotContains(t, late.Text("aaaa..bbbb!"), "bbbb")
}

func TestTextThatWasCutWithinASecretLosesItsEnd(t *testing.T) {
	t.Parallel()
	s := withAnswer(t, "swordfish-is-the-word", "")
	require.Equal(t, "[secret]", s.Cut("swordfish-is"))
	require.Equal(t, "key [secret]…", s.Text("key swordfish…"))
	require.Equal(t, "a sword", s.Text("a sword"), "a whole text may end as a secret begins")
	long := strings.Repeat("x", 4096-5)
	require.Equal(t, long+"[secret]", s.Text(long+"sword"))
}

func TestSecretsOfSeveralAnswersAddUp(t *testing.T) {
	t.Parallel()
	s := withAnswer(t, "swordfish", "")
	s.AddSecret([]byte(`"hunter22"`), nil)
	require.Equal(t, "[secret] [secret]", s.Text("swordfish hunter22"))
	require.Equal(t, map[string]any{"a": "[secret]"}, s.Value(map[string]any{"a": "hunter22"}))
}

func TestOfAnAnswerTooLargeToLookForEverythingIsASecret(t *testing.T) {
	t.Parallel()
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf("secret number %d", i)
	}
	for _, answer := range []any{strings.Repeat("x", 20_000), many} {
		s := withAnswer(t, answer, "")
		require.Equal(t, redact.Replacement, s.Text("anything"))
		require.JSONEq(t, `{"a":"[secret]","b":["[secret]",true]}`, string(s.JSON(json.RawMessage(`{"a":"b","b":[1,true]}`))))
	}
	var broken redact.SecretAnswers
	broken.AddSecret([]byte(`{"a`), nil)
	require.Equal(t, redact.Replacement, broken.Text("anything"))
}

func TestAnswersWithoutStringsHideNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []any{nil, true, map[string]any{"status": "cancelled"}, "", "  ", []any{}, "secret"} {
		require.False(t, withAnswer(t, answer, "").Active(), "%v", answer)
	}
	var none *redact.SecretAnswers
	require.Equal(t, "x", none.Text("x"))
	require.Equal(t, "x", none.Cut("x"))
	require.Equal(t, "{", string(none.JSON(json.RawMessage("{"))))
	require.Equal(t, 1, none.Value(1))
}

// TestHostileSecretsAndTextsCostBoundedTime compares the worst case that a person and a tool can cause
// together with a budget, and the budget with one decoding of the same text.
func TestHostileSecretsAndTextsCostBoundedTime(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 1<<20)
	one := time.Now()
	_, err := events.Decode([]byte(`"` + text + `"`))
	require.NoError(t, err)
	decoding := time.Since(one)
	parts := make([]string, 100)
	for i := range parts {
		parts[i] = strings.Repeat("a", 50+i) + "b"
	}
	s := withAnswer(t, parts, "")
	start := time.Now()
	require.Equal(t, text, s.Text(text[:len(text)-1] + "c")[:0]+text)
	require.Less(t, time.Since(start), 100*decoding+2*time.Second)
}

func BenchmarkTextWithoutSecret(b *testing.B) {
	var s redact.SecretAnswers
	text := strings.Repeat("a line of output ", 10)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Text(text)
	}
}

func BenchmarkTextWithSecret(b *testing.B) {
	s := withAnswer(b, map[string]any{"api_key": "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"}, "")
	text := strings.Repeat("a line of output ", 64)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Text(text)
	}
}

func FuzzLearner(f *testing.F) {
	f.Add("swordfish", "the swordfish is here")
	f.Add("aaaa", "aaaaaaa")
	f.Fuzz(func(t *testing.T, secret, text string) {
		data, err := json.Marshal(secret)
		if err != nil || !utf8.ValidString(secret) || !utf8.ValidString(text) {
			return
		}
		var s redact.SecretAnswers
		s.AddSecret(data, nil)
		if trimmed := strings.TrimSpace(secret); s.Active() && len(trimmed) >= 4 {
			require.NotContains(t, strings.ReplaceAll(s.Text(text+trimmed+text), redact.Replacement, "\x00"), trimmed)
		}
	})
}
