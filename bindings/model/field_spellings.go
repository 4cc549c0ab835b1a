package model

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/oneturn/oneturn/internal/nearest"
)

// Names of fields are compared without case and signs. [names] finds the field that another spelling of a key
// means; closestName suggests one for a key that is misspelt, and printable keeps keys that are long or contain
// odd characters out of violations.

// Plain is the form in which names of fields are compared: without case and without everything but
// letters and digits, in NFC, so that userName and user_name are one name. Names that encoding/json takes
// for the same field have the same plain form.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return Fold(r)
		}
		return -1
	}, norm.NFC.String(name))
}

// Fold returns the smallest rune that differs from r in case only.
func Fold(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// names are the fields that an object's keys can mean.
type names struct {
	composed map[string]string   // NFC → field, of the fields that are not ASCII
	plain    map[string][]string // plain form → fields; nil where other spellings are dropped like other keys
}

func newNames(fields []string, loose bool) names {
	var n names
	if loose {
		n.plain = make(map[string][]string, len(fields))
	}
	for _, field := range fields {
		if key := norm.NFC.String(field); !ascii(field) {
			if n.composed == nil {
				n.composed = map[string]string{}
			}
			if _, taken := n.composed[key]; !taken || key == field {
				n.composed[key] = field
			}
		}
		if plain := Plain(field); loose && plain != "" {
			n.plain[plain] = append(n.plain[plain], field)
		}
	}
	return n
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// candidates returns the fields that a key may mean which names none exactly. The same letters in
// another form of Unicode come before another spelling.
func (n *names) candidates(key string) []string {
	if n.composed != nil && !ascii(key) {
		if field, ok := n.composed[norm.NFC.String(key)]; ok {
			return []string{field}
		}
	}
	if n.plain == nil {
		return nil
	}
	return n.plain[Plain(key)]
}

// respell returns in with its keys as the fields are named, and whether that is another map. A key that no field names, in another
// spelling of a field, is that field: the user of the object may compare names as loosely, and would
// use a value that no rule has checked. Such a key is dropped when the field itself is there. Several keys for
// one field, and a key for several fields, are violations: it cannot be known which one was meant.
func (c *checker) respell(r *objectRules, in map[string]any) (named map[string]any, renamed bool) {
	var loose []string
	for key := range in {
		if _, isField := r.index[key]; !isField && r.names.candidates(key) != nil {
			loose = append(loose, key)
		}
	}
	if loose == nil {
		return in, false
	}
	named = maps.Clone(in)
	slices.Sort(loose)
	from := map[string]string{}
	for _, key := range loose {
		delete(named, key)
		meant := slices.DeleteFunc(slices.Clone(r.names.candidates(key)), func(field string) bool { _, there := in[field]; return there })
		switch {
		case len(meant) == 0:
		case len(meant) > 1:
			c.add(ambiguous(key, in[key], "the key "+quotedOr(meant)+" instead of \""+printable(key)+"\""))
		case from[meant[0]] != "":
			c.add(ambiguous(meant[0], in[key], "one key \""+meant[0]+"\" instead of "+quotedAnd(from[meant[0]], key)))
		default:
			from[meant[0]] = key
			named[meant[0]] = in[key]
		}
	}
	return named, true
}

func ambiguous(key string, v any, expected string) Violation {
	return Violation{Path: "/" + pathToken(printable(key)), Rule: RuleAdditionalProperties, Expected: expected, GotType: typeName(v)}
}

func quotedOr(names []string) string {
	return `"` + strings.Join(names, `" or "`) + `"`
}

func quotedAnd(a, b string) string {
	return `"` + printable(a) + `" and "` + printable(b) + `"`
}

// maxShown is the longest key, in bytes, that is shown in a violation.
const maxShown = 64

// closestName returns the candidate that word most likely is a misspelling of, "" if none is close:
// a third of its Plain may differ.
func closestName(word string, candidates []string) string {
	return nearest.Of(word, candidates, nearest.Rule{
		Fold:  Plain,
		Edits: func(word, _ string) int { return len(Plain(word)) / 3 },
	})
}

// printable returns key if it is short and safe to show, else "*".
func printable(key string) string {
	if key == "" || len(key) > maxShown || !utf8.ValidString(key) ||
		strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "*"
	}
	return key
}

// pathToken escapes one step of a JSON pointer.
func pathToken(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
