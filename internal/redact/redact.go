// Package redact replaces secrets in texts and JSON values, in any escape or encoding. A [Set] has fixed
// secrets, such as the ones of manifests, for what services and servers answer. [SecretAnswers] collect the secret
// answers of people while a call runs, for all that the call reports.
//
// The files: redact.go has the set, encodings.go the patterns of a secret, matcher.go searches for all of
// them in one pass, unescape.go undoes escapes, json.go walks a JSON text and keeps its bytes, secret_answers.go
// decides what of an answer is secret, and redacts it.
//
// A text is searched as it is and as each of three rounds of unescaping leaves it ([unescape]): a
// percent-encoded JSON string in an HTML page is found like the plain text. Each of these views is
// searched a second time without white space, for what is wrapped into lines. Encodings that cannot
// be undone in place, since a text may hold them anywhere, are patterns: base64, base32 and hex. Case
// never matters.
package redact

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// Replacement stands for a secret.
	Replacement = "[secret]"
	// Shortest is the length in bytes from which on a secret is searched for: shorter ones are part of too many words.
	Shortest = 4

	rounds   = 3 // of unescaping
	unbroken = 8 // bytes of a pattern that is also searched for across white space
)

// Set finds some secrets. The zero value has none. It is immutable and safe for concurrent use.
type Set struct{ m *matcher }

// Options of a [Set].
type Options struct {
	Lines bool // each line of a secret is a secret too: programs print line by line
	Short bool // secrets shorter than [Shortest] count as well
}

// New returns the set of some secrets. White space around them is not part of them, and empty ones are omitted.
func New(o Options, texts ...string) Set {
	least := Shortest
	if o.Short {
		least = 1
	}
	patterns := map[string]struct{}{}
	add := func(text string) {
		if text = strings.TrimSpace(text); len(text) >= least {
			for _, form := range forms(text) {
				patterns[form] = struct{}{}
			}
		}
	}
	for _, text := range texts {
		add(text)
		if o.Lines {
			for line := range strings.Lines(text) {
				add(line)
			}
		}
	}
	if len(patterns) == 0 {
		return Set{}
	}
	return Set{newMatcher(patterns)}
}

// Text replaces the secrets in a text.
func (s Set) Text(text string) string { return s.replace(text, false) }

// Cut replaces the secrets in a text that was cut at its end: what is left of a secret there, at
// least [Shortest] bytes, goes too.
func (s Set) Cut(text string) string { return s.replace(text, true) }

// span is a stretch of a text, in bytes.
type span struct{ from, to int }

func (s Set) replace(text string, cut bool) string {
	if s.m == nil {
		return text
	}
	var found []span
	for view, more := viewOf(text), true; more; view, more = view.unescape() {
		found = s.m.find(found, view, cut, 1)
		if joined, broken := view.unbroken(); broken {
			found = s.m.find(found, joined, cut, unbroken)
		}
	}
	return cover(text, found)
}

// cover replaces spans of a text, those that overlap or touch by one replacement.
func cover(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var b strings.Builder
	done := 0
	for i := 0; i < len(spans); {
		from, to := spans[i].from, spans[i].to
		for i++; i < len(spans) && spans[i].from <= to; i++ {
			to = max(to, spans[i].to)
		}
		b.WriteString(text[done:from])
		b.WriteString(Replacement)
		done = to
	}
	b.WriteString(text[done:])
	return b.String()
}
