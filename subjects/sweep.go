package subjects

import (
	"strconv"
	"strings"
)

// SweepTimer is the subject of the schedule of the next sweep.
func (s Space) SweepTimer() string { return s.prefix + ".timer.sweep" }

// SweepDue is the subject on which the server delivers a sweep that is due.
func (s Space) SweepDue() string { return s.prefix + ".due.sweep" }

// InOf is the subject of an inbound message whose tokens are known, the inverse of
// [Space.ParseIn]. It reports false if a token is none, or pool or kind are not plain.
func (s Space) InOf(in Inbound) (string, bool) {
	for _, token := range []string{in.Pool, in.Kind, in.App, in.Workflow, in.Chat} {
		if _, _, err := Untoken(token); err != nil {
			return "", false
		}
	}
	if CheckPool(in.Pool) != nil || Token(in.Kind) != in.Kind {
		return "", false
	}
	return s.prefix + ".in." + in.Pool + "." + in.Kind + "." + in.App + "." + in.Workflow + "." + in.Chat, true
}

// ParseCall parses the key of a call as [Key.String] writes it. It reports false for anything
// else, also for tokens that no id has.
func ParseCall(key string) (Key, bool) {
	var k Key
	rest := key
	for i, field := range []*string{&k.App, &k.Chat, &k.Turn, &k.Call} {
		token, tail, more := strings.Cut(rest, ".")
		if _, _, err := Untoken(token); err != nil || more != (i < 3) {
			return Key{}, false
		}
		*field, rest = token, tail
	}
	return k, true
}

// ParseTurnToken returns run id and turn key of a [TurnToken]. It reports false for any other
// token, among them hashes and [ReusedTurnToken]s.
func ParseTurnToken(token string) (run, turn string, ok bool) {
	text, hashed, err := Untoken(token)
	if err != nil || hashed {
		return "", "", false
	}
	run, turn, ok = parted(text)
	return run, turn, ok && TurnToken(run, turn) == token
}

// ParseMessageToken returns run id and id of a [MessageToken]. It reports false for any other token, among them hashes.
func ParseMessageToken(token string) (run, id string, ok bool) {
	text, hashed, err := Untoken(token)
	joined, found := strings.CutPrefix(text, messageMark)
	if err != nil || hashed || !found {
		return "", "", false
	}
	run, id, ok = parted(joined)
	return run, id, ok && MessageToken(run, id) == token
}

// parted parts a run id and another id that were joined with the length of the first.
func parted(text string) (run, id string, ok bool) {
	size, rest, ok := strings.Cut(text, "-")
	n, err := strconv.Atoi(size)
	if !ok || err != nil || n < 0 || n > len(rest) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

// SweepKey is a key of what sweeps keep in the bucket of context variables. Its first token
// is not the token of any tenant.
func SweepKey(name string) string { return "=sweep." + name }
