package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
)

// forms returns what a secret looks like where programs write texts: as it is, escaped for JSON
// in the ways of Go and Python, percent-encoded, in base64 and in hex.
func forms(secret string) []string {
	const offsets = 3 // of base64
	plain, escaped, quoted := inJSON(secret, false), inJSON(secret, true), ascii(secret)
	python := strings.ReplaceAll(plain, `\"`, `"`)
	all := make([]string, 0, 16+2*offsets) //nolint:mnd // those that follow
	all = append(all, secret,
		plain, escaped, quoted, inJSON(plain, false), inJSON(escaped, false), inJSON(quoted, false), // JSON, and JSON in JSON
		python, strings.ReplaceAll(python, `'`, `\'`),
		url.QueryEscape(secret), url.PathEscape(secret), percent(secret, ""), percent(secret, "/"),
		strings.ReplaceAll(percent(secret, "/"), "%20", "+"),
		fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret),
	)
	for offset := range offsets {
		core := base64Core(secret, offset)
		all = append(all, core, strings.NewReplacer("+", "-", "/", "_").Replace(core))
	}
	return all
}

// inJSON is the text between the quotes of a JSON string.
func inJSON(text string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// ascii is the text between the quotes of a JSON string that has only ASCII.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range inJSON(text, false) {
		switch {
		case r < 0x80: //nolint:mnd // the end of ASCII
			b.WriteRune(r)
		case r > 0xffff: //nolint:mnd // the end of the basic plane
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// percent encodes every byte but the unreserved ones and those of safe.
func percent(text, safe string) string {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; strings.IndexByte(unreserved, c) >= 0 || strings.IndexByte(safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// base64Core is what base64 makes of a secret that stands behind offset other bytes (as in
// "user:secret"), without the characters that its neighbours have a part in.
func base64Core(secret string, offset int) string {
	const bits, byteBits = 6, 8
	encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), secret...))
	from := (byteBits*offset + bits - 1) / bits
	to := byteBits * (offset + len(secret)) / bits
	return encoded[from:max(from, to)]
}
