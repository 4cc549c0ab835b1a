package subjects

import "strings"

// DeferralTimer returns the subject of the schedule that publishes a message on an inbound subject again,
// and the subject on which the server delivers it until then. The id distinguishes messages of one
// subject; it has to be a plain token. It reports false for subjects that are not inbound.
func (s Space) DeferralTimer(inbound, id string) (timer, due string, ok bool) {
	if _, ok := s.ParseIn(inbound); !ok || Token(id) != id {
		return "", "", false
	}
	rest := strings.TrimPrefix(inbound, s.prefix)
	return s.prefix + ".timer" + rest + "." + id, s.prefix + ".due" + rest, true
}

// DeferralTimers matches the schedules that [Space.DeferralTimer] names.
func (s Space) DeferralTimers() string { return s.prefix + ".timer.in.>" }

// ParseDeferralTimer returns the inbound subject of a schedule that [Space.DeferralTimer] names, and its id. It reports false
// for any other subject.
func (s Space) ParseDeferralTimer(subject string) (in Inbound, id string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".timer")
	at := strings.LastIndexByte(rest, '.')
	if !ok || at < 0 {
		return Inbound{}, "", false
	}
	in, ok = s.ParseIn(s.prefix + rest[:at])
	return in, rest[at+1:], ok && rest[at+1:] != ""
}

// ParseDeferralDue returns the inbound subject of a message that [Space.DeferralTimer] has delivered. It reports
// false for any other subject.
func (s Space) ParseDeferralDue(subject string) (inbound string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".due.")
	if !ok {
		return "", false
	}
	inbound = s.prefix + "." + rest
	_, ok = s.ParseIn(inbound)
	return inbound, ok
}
