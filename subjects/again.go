package subjects

import "strings"

// InTimer returns the subject of the schedule that publishes a message on an inbound subject again,
// and the subject on which the server delivers it until then. The id tells messages of one subject
// apart; it has to be a plain token. It reports false for subjects that are not inbound.
func (s Space) InTimer(inbound, id string) (timer, due string, ok bool) {
	if _, ok := s.ParseIn(inbound); !ok || Token(id) != id {
		return "", "", false
	}
	rest := strings.TrimPrefix(inbound, s.prefix)
	return s.prefix + ".timer" + rest + "." + id, s.prefix + ".due" + rest, true
}

// InTimers matches the schedules that [Space.InTimer] names.
func (s Space) InTimers() string { return s.prefix + ".timer.in.>" }

// ParseInTimer returns the inbound subject of a schedule that [Space.InTimer] names, and its id. It reports false
// for any other subject.
func (s Space) ParseInTimer(subject string) (in Inbound, id string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".timer")
	at := strings.LastIndexByte(rest, '.')
	if !ok || at < 0 {
		return Inbound{}, "", false
	}
	in, ok = s.ParseIn(s.prefix + rest[:at])
	return in, rest[at+1:], ok && rest[at+1:] != ""
}

// ParseInDue returns the inbound subject of a message that [Space.InTimer] has delivered. It reports
// false for any other subject.
func (s Space) ParseInDue(subject string) (inbound string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".due.")
	if !ok {
		return "", false
	}
	inbound = s.prefix + "." + rest
	_, ok = s.ParseIn(inbound)
	return inbound, ok
}
