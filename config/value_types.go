package config

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
)

// Types of settings with their own text form: secrets that are never printed, URLs, sizes in bytes.

// redacted stands for every secret.
const redacted = "***"

// Secret is a text that never appears in logs, errors or printed structs. string(s) reveals
// it.
type Secret string

// Format prints *** for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// String returns ***.
func (Secret) String() string { return redacted }

// LogValue logs ***.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText encodes ***, in JSON and YAML too.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// URL is a comma separated list of server URLs, which may hold user and password. It prints
// without them. string(u) reveals them.
type URL string

// String returns the URLs without user and password.
func (u URL) String() string {
	urls := strings.Split(string(u), ",")
	for i, one := range urls {
		scheme, rest, ok := strings.Cut(one, "://")
		if !ok {
			scheme, rest = "", one
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		if ok {
			rest = scheme + "://" + rest
		}
		urls[i] = strings.TrimSpace(rest)
	}
	return strings.Join(urls, ",")
}

// Format prints [URL.String] for every verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(u.String())) }

// LogValue logs [URL.String].
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText encodes [URL.String], in JSON and YAML too.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// secrets returns what must not appear in an error about u: the list, each URL and each
// userinfo.
func (u URL) secrets() []string {
	secrets := []string{}
	for one := range strings.SplitSeq(string(u), ",") {
		_, rest, ok := strings.Cut(one, "://")
		if !ok {
			rest = one
		}
		if at := strings.LastIndexByte(rest, '@'); at > 0 {
			secrets = append(secrets, rest[:at+1], rest[:at])
			if user, password, ok := strings.Cut(rest[:at], ":"); ok && password != "" && user != "" {
				secrets = append(secrets, password)
			}
		}
	}
	return secrets
}

// Bytes is a size; -1 means no limit. Written as a number with an optional unit: kB, MB, GB,
// TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
type Bytes int64

// String writes b with the largest unit that fits it exactly.
func (b Bytes) String() string {
	if b <= 0 {
		return strconv.FormatInt(int64(b), 10)
	}
	for _, unit := range byteUnits() {
		if unit.size > 1000 && int64(b)%unit.size == 0 {
			return strconv.FormatInt(int64(b)/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

type byteUnit struct {
	name string
	size int64
}

// byteUnits lists the units, binary before decimal, larger before smaller.
func byteUnits() []byteUnit {
	return []byteUnit{
		{"TiB", 1 << 40},
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"kB", 1e3},
	}
}

// parseBytes is the inverse of [Bytes.String].
func parseBytes(text string) (Bytes, bool) {
	size := int64(1)
	for _, unit := range byteUnits() {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			text, size = strings.TrimSpace(number), unit.size
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -1 || n > math.MaxInt64/size || n == -1 && size != 1 {
		return 0, false
	}
	return Bytes(n * size), true
}
