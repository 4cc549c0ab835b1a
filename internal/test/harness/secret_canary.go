package harness

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/oneturntest"
)

// Canaries are texts that stand for secrets, one for each place that a secret may come from.
// Plant them in arguments, headers, variables and the environment, let everything go wrong,
// and look for them where no secret may be.
type Canaries struct{ run string }

// NewCanaries returns canaries that are unique.
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

// Within reports whether a canary of any place is in data: as it is, in base64 or in hex.
func (c Canaries) Within(data []byte) bool {
	for _, trace := range c.traces() {
		if bytes.Contains(data, []byte(trace)) {
			return true
		}
	}
	return false
}

// traces are what every canary leaves, however it is written.
func (c Canaries) traces() []string {
	const offsets, group = 3, 4 // base64 makes four characters of three bytes
	traces := make([]string, 0, 2+offsets)
	traces = append(traces, c.run, hex.EncodeToString([]byte(c.run)))
	for offset := range offsets {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", offset) + c.run))
		traces = append(traces, text[group:len(text)-2*group]) // the ends depend on the neighbours
	}
	return traces
}

// Files returns the files under a folder that hold a canary, see [Canaries.Within]: of the store
// of a server that has stopped, for example.
func (c Canaries) Files(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name) //nolint:gosec // the folder is the test's own
		if err == nil && c.Within(data) {
			found = append(found, name)
		}
		return err //nolint:wrapcheck // the caller adds what for
	})
	if err != nil {
		return nil, fmt.Errorf("look for canaries in %s: %w", dir, err)
	}
	return found, nil
}

// Check is invariant I9: no canary is in the headers of records, in what oneturn writes into
// the headers of dead letters, or in the given texts, for example "log" and "metrics". The facts may be
// nil. The bodies of records and dead letters are the data itself and are not looked at; a
// sender's own headers travel with its dead letter and are its own.
func (c Canaries) Check(f *oneturntest.Facts, texts map[string]string) []oneturntest.Violation {
	var found []oneturntest.Violation
	look := func(turn, where, text string) {
		if places := c.In(text); len(places) > 0 {
			found = append(found, oneturntest.Violation{Invariant: "I9", Turn: turn, Text: "a canary of " + strings.Join(places, ", ") + " is in " + where})
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
		look(r.Key, "the headers of a record", strings.Join([]string{m.Owner, m.Nonce, m.Effect, m.Digest, m.Fingerprint, m.Outcome, m.Pool, m.Trace}, " "))
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
