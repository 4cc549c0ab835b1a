package turntest

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"
)

// Canaries are texts that stand for secrets, one for each place that a secret may come from.
// Plant them in arguments, headers, variables and the environment, let everything go wrong,
// and look for them where no secret may be.
type Canaries struct{ run string }

// NewCanaries returns canaries that nobody else has.
func NewCanaries() Canaries { return Canaries{"CANARY" + rand.Text()} }

// Of returns the canary of a place: a name of letters, digits and spaces.
func (c Canaries) Of(place string) string { return c.run + "-" + place + "-end" }

// In returns the places whose canaries are in a text.
func (c Canaries) In(text string) []string {
	var places []string
	for part := range strings.SplitSeq(text, c.run+"-") {
		place, _, _ := strings.Cut(part, "-end")
		places = append(places, place)
	}
	return places[1:]
}

// Check is invariant I9: no canary is in the headers of records, in what oneturn writes into
// the headers of dead letters, or in the given texts, say "log" and "metrics". The facts may be
// nil. The bodies of records and dead letters are the data itself and are not looked at; a
// sender's own headers travel with its dead letter and are its own.
func (c Canaries) Check(f *Facts, texts map[string]string) []Violation {
	var found []Violation
	look := func(turn, where, text string) {
		if places := c.In(text); len(places) > 0 {
			found = append(found, Violation{"I9", turn, "a canary of " + strings.Join(places, ", ") + " is in " + where})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		look("", name, texts[name])
	}
	if f == nil {
		return found
	}
	for i := range f.Journal {
		r, m := &f.Journal[i], &f.Journal[i].Meta
		look(r.Key, "the headers of a record", strings.Join([]string{m.Owner, m.Nonce, m.Effect, m.Digest, m.Fingerprint, m.Verdict, m.Pool, m.Trace}, " "))
	}
	for _, l := range f.Dead {
		for name, values := range l.Header {
			if strings.HasPrefix(name, "Oneturn-") {
				look("", "header "+name+" of a dead letter", strings.Join(values, " "))
			}
		}
	}
	return found
}
