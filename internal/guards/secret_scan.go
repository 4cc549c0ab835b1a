package guards

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oneturn/oneturn/internal/tools"
)

// The check for secrets: credentials is the table of forms, find searches every text of a value, names of fields
// included.

// secret refuses values that look like credentials. It knows forms that are hardly ever anything
// else; it is a net, not a wall.
type secret struct{}

// credential is a form of credentials. A text without the mark is not looked at closer: the marks
// make the search of an ordinary value cheap.
type credential struct {
	kind string
	mark string
	form *regexp.Regexp
}

// credentials is the table of known forms.
var credentials = []credential{ //nolint:gochecknoglobals // a read-only table
	{"a private key", "PRIVATE KEY-----", regexp.MustCompile(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----`)},
	{"an AWS access key", "AKIA", regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},
	{"an AWS access key", "ASIA", regexp.MustCompile(`\bASIA[0-9A-Z]{16}\b`)},
	{"a GitHub token", "gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36}`)},
	{"a GitHub token", "github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{50}`)},
	{"a GitLab token", "glpat-", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20}`)},
	{"an API key of a model", "sk-", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20}`)},
	{"a Slack token", "xox", regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10}`)},
	{"a Slack token", "xapp-", regexp.MustCompile(`\bxapp-[A-Za-z0-9-]{10}`)},
	{"a Slack webhook", "hooks.slack.com/", regexp.MustCompile(`hooks\.slack\.com/services/[A-Za-z0-9/]{20}`)},
	{"a Google API key", "AIza", regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
	{"a Stripe key", "k_live_", regexp.MustCompile(`\b[sr]k_live_[0-9A-Za-z]{16}`)},
	{"an npm token", "npm_", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}`)},
	{"a JSON Web Token", "eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16}`)},
	{"a NATS seed", "S", regexp.MustCompile(`\bS[UAONCX][A-Z2-7]{56}\b`)},
	{"a password in a URL", "://", regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@"']*:[^/\s@"']+@`)},
}

func (secret) refuse(ctx context.Context, _ *tools.Call, v *value) error {
	tree, err := v.tree()
	if err != nil {
		return err
	}
	kind, path := find(ctx, tree)
	if err := ctx.Err(); err != nil {
		return err
	}
	if kind == "" {
		return nil
	}
	where := ""
	if path != "" {
		where = " at " + path
	}
	return &Refusal{Reason: v.name + " may not hold credentials: there is what looks like " + kind + where}
}

// find returns the first credential in v, in the order of its paths, and where it is. The path
// contains no credential either: for one that is itself a key it is the path of its object.
func find(ctx context.Context, v any) (kind, path string) {
	if ctx.Err() != nil {
		return "", ""
	}
	switch v := v.(type) {
	case string:
		return kindOf(v), ""
	case []any:
		for i, item := range v {
			if kind, path := find(ctx, item); kind != "" {
				return kind, "/" + strconv.Itoa(i) + path
			}
		}
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		for _, key := range keys {
			if kind := kindOf(key); kind != "" {
				return kind, ""
			}
		}
		for _, key := range keys {
			if kind, path := find(ctx, v[key]); kind != "" {
				return kind, "/" + step(key) + path
			}
		}
	}
	return "", ""
}

// kindOf returns what a text looks like, "" for anything ordinary.
func kindOf(text string) string {
	const shortest = 12 // characters of anything in the table
	if len(text) < shortest {
		return ""
	}
	for _, c := range credentials {
		if strings.Contains(text, c.mark) && c.form.MatchString(text) {
			return c.kind
		}
	}
	return ""
}

// step writes a key in a path: escaped, and hidden unless it is short and printable.
func step(key string) string {
	const longest = 64
	if key == "" || len(key) > longest || !utf8.ValidString(key) ||
		strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "*"
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
