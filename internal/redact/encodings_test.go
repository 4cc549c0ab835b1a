package redact_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/redact"
)

// wrapped breaks a text into lines.
func wrapped(text string, width int, end string) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + end)
		text = text[width:]
	}
	return b.String() + text
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestSecretIsFoundInEveryFormThatProgramsWrite(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"p@ss!wo(rd)", `a<b&c>"d'e`, "sk-live-123456", "tab\tand ünïcödé 🗝", strings.Repeat("0123456789abcdefgh", 8), `back\slash%41&amp;`, "1234 5678",
	} {
		raw := []byte(secret)
		encoded, encoded32 := base64.StdEncoding.EncodeToString(raw), base32.StdEncoding.EncodeToString(raw)
		for name, form := range map[string]string{
			"plain": secret, "upper case": strings.ToUpper(secret), "lower case": strings.ToLower(secret),
			"HTML": html.EscapeString(secret), "HTML by name": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(secret),
			"HTML by number": strings.NewReplacer("@", "&#64;", "(", "&#x28;", "a", "&#97;", "1", "&#x31;").Replace(secret),
			"query":          url.QueryEscape(secret), "path": url.PathEscape(secret),
			"encodeURIComponent": strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(secret)),
			"small percent":      strings.ToLower(url.QueryEscape(secret)), "percent twice": url.QueryEscape(url.QueryEscape(secret)),
			"JSON": quoted(secret), "JSON in JSON": quoted(quoted(secret)), "JSON in HTML": html.EscapeString(quoted(secret)), "Go": fmt.Sprintf("%+q", secret),
			"shell":  strings.NewReplacer("!", `\!`, "(", `\(`, ")", `\)`, `\`, `\\`).Replace(secret),
			"base64": encoded, "base64 in lines": wrapped(encoded, 76, "\r\n"), "base64 in lines of JSON": quoted(wrapped(encoded, 64, "\n")),
			"URL base64": base64.RawURLEncoding.EncodeToString(raw), "base64 in a query": url.QueryEscape(encoded),
			"base32": encoded32, "base32 in small letters": strings.ToLower(encoded32), "base32 in lines": wrapped(encoded32, 40, "\n"),
			"hex": fmt.Sprintf("%x", secret), "HEX": fmt.Sprintf("%X", secret), "broken": wrapped(secret, 9, "\n  "),
		} {
			got := redact.New(redact.Options{}, secret).Text("before " + form + " after")
			require.True(t, strings.HasPrefix(got, "before ") && strings.HasSuffix(got, " after"), "%q as %s: %q became %q", secret, name, form, got)
			rest := strings.Trim(strings.ReplaceAll(got[len("before "):len(got)-len(" after")], redact.Replacement, ""), "\"\\&quot;#34=%D")
			require.Contains(t, got, redact.Replacement, "%q as %s: %q", secret, name, form)
			require.LessOrEqual(t, len(rest), 4, "%q as %s: %q became %q", secret, name, form, got)
		}
	}
}

func TestOrdinaryTextStaysAsItIs(t *testing.T) {
	t.Parallel()
	s := redact.New(redact.Options{}, "p@ss!wo(rd)", "1234", "swordfish")
	for _, text := range []string{
		"", "a & b &amp; c", `C:\users\ada`, "100 % of 50%", "12 34", "sword fis", "%zz%4", `\u12`, `\`, "&", "&;", "&unknown;", "%", "word\nfish",
		"\xff\xfe", strings.Repeat("a line of output ", 100),
	} {
		require.Equal(t, text, s.Text(text))
	}
}

func TestSecretsOfDifferentFormsAreReplacedOnceEach(t *testing.T) {
	t.Parallel()
	s := redact.New(redact.Options{}, "swordfish", "fish-and-chips")
	require.Equal(t, "[secret] [secret], [secret]!", s.Text("swordfish SWORDFISH, sw%6Frdfish!"))
	require.Equal(t, "[secret]", s.Text("swordfish-and-chips"))
	require.Equal(t, "key [secret]", s.Cut("key swordf"))
	require.Equal(t, "key [secret]", s.Cut("key sw%6Frd"))
	require.Equal(t, "key swo", s.Cut("key swo"))
}

// A hostile text costs memory and time in proportion to its length.
func TestHostileTextsCostBoundedTime(t *testing.T) {
	t.Parallel()
	s := redact.New(redact.Options{}, strings.Repeat("a", 1000)+"b", strings.Repeat("%25", 300), strings.Repeat(`\`, 200)+"x")
	for _, unit := range []string{"a", "%25", `\\`, "&amp;", `\u005c`, " a", "&#37;32 ", "\\\\u0061"} {
		text := strings.Repeat(unit, (1<<20)/len(unit))
		start := time.Now()
		_ = s.Text(text)
		require.Less(t, time.Since(start), 5*time.Second, unit)
	}
}

func BenchmarkText(b *testing.B) {
	s := redact.New(redact.Options{}, "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz")
	text := strings.Repeat("a line of output & more ", 64)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Text(text)
	}
}

func FuzzSecretIsGone(f *testing.F) {
	f.Add("swordfish", "the swordfish%20is here")
	f.Add(`a\u0041%41&amp;`, `\\u0041`)
	f.Add("000\x80", "0")
	f.Fuzz(func(t *testing.T, secret, text string) {
		trimmed := strings.TrimSpace(secret)
		if len(trimmed) < redact.Shortest {
			return
		}
		got := redact.New(redact.Options{}, secret).Text(text + trimmed + text)
		require.NotContains(t, strings.ReplaceAll(got, redact.Replacement, "\x00"), trimmed)
	})
}
