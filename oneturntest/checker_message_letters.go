// checker_message_letters.go compares the dead letters with the messages that are not stored, or whose id has other content.

package oneturntest

import (
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/subjects"
)

// deadLetterOf reports whether a dead letter has the inbound subject of a message.
func (c *checker) deadLetterOf(s *SentMessage) bool {
	return slices.ContainsFunc(c.facts.Dead, func(d DeadLetter) bool { return strings.HasSuffix(d.Subject, s.subject()) })
}

// subject is how the inbound subjects of a message end.
func (s *SentMessage) subject() string {
	e := &s.Event
	return "." + strings.Join([]string{e.InboundKind(), subjects.Token(e.App), subjects.Token(e.Workflow), subjects.Token(e.Chat)}, ".")
}

// checkConflicts: each message whose id was used with other content before is reported by a dead letter, and no other is.
func (c *checker) checkConflicts() {
	want, letters, all := map[string]map[string]bool{}, map[string]int{}, map[string]int{}
	for _, m := range c.messages {
		for _, s := range m.sent {
			if want[s.subject()] == nil {
				want[s.subject()] = map[string]bool{}
			}
			if m.text != nil && s.fingerprint() != m.text.Meta.Fingerprint {
				want[s.subject()][m.name+" "+s.fingerprint()] = true
			}
		}
	}
	for _, d := range c.facts.Dead {
		subject := suffixOf(d.Subject, want)
		if all[subject]++; d.Reason == deadletter.ReasonMessageConflict {
			letters[subject]++
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(want)) {
		switch conflicts := len(want[subject]); {
		case all[subject] < conflicts: // a message may be a dead letter for another reason before its id has other content
			c.failf(invariantMessage, "", "%d messages on *%s have an id that other content has, and %d of them are dead letters", conflicts, subject, all[subject])
		case conflicts == 0 && letters[subject] > 0:
			c.failf(invariantMessage, "", "a message on *%s is a dead letter because of its id, which no other content has", subject)
		}
	}
}

// suffixOf returns the end of a subject that is a key of a map.
func suffixOf(subject string, in map[string]map[string]bool) string {
	for suffix := range in {
		if strings.HasSuffix(subject, suffix) {
			return suffix
		}
	}
	return subject
}
