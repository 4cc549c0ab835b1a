package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// forms returns the patterns of a secret: as it reads once escapes are undone, which may be in it
// itself, in upper and lower case, without white space, and encoded.
func forms(secret string) []string {
	var all []string
	for v, more := viewOf(secret), true; more; v, more = v.unescape() {
		all = append(all, plainForms(string(v.text))...)
	}
	all = append(all, lower(hex.EncodeToString([]byte(secret))))
	const base64Bits, base32Bits = 6, 5
	for offset := range 3 {
		std := core(base64.RawStdEncoding.EncodeToString, base64Bits, secret, offset)
		all = append(all, encodedForms(std, strings.NewReplacer("+", "-", "/", "_").Replace(std))...)
	}
	for offset := range 5 {
		all = append(all, encodedForms(core(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString, base32Bits, secret, offset))...)
	}
	return all
}

// plainForms are the forms of a text that is not encoded. HTML forms write a blank as a plus sign.
func plainForms(text string) []string {
	var all []string
	for _, form := range []string{
		text, strings.ToUpper(text), strings.ToLower(text), strings.ReplaceAll(text, " ", "+"),
		strings.ToValidUTF8(text, "\ufffd"), // as encoders of JSON write it
	} {
		all = append(all, lower(form))
		if joined := strings.Join(strings.Fields(form), ""); len(joined) >= unbroken {
			all = append(all, lower(joined))
		}
	}
	return all
}

// encodedForms are the encodings that are long enough not to be words.
func encodedForms(texts ...string) []string {
	const shortest = 5
	var all []string
	for _, text := range texts {
		if len(text) >= shortest {
			all = append(all, lower(text))
		}
	}
	return all
}

// core is how a secret reads in an encoding of so many bits a character after offset other bytes
// (as in "user:secret"), without the characters that its neighbours have a part in.
func core(encode func([]byte) string, bits int, secret string, offset int) string {
	const byteBits = 8
	encoded := encode(append(make([]byte, offset), secret...))
	from := (byteBits*offset + bits - 1) / bits
	to := byteBits * (offset + len(secret)) / bits
	return encoded[from:max(from, to)]
}

// lower folds ASCII letters, as the matcher does. All other bytes stay, also those that are not UTF-8.
func lower(text string) string {
	folded := []byte(text)
	for i, c := range folded {
		if c >= 'A' && c <= 'Z' {
			folded[i] = c + 'a' - 'A'
		}
	}
	return string(folded)
}
