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

// InTimersOfTenant matches the schedules of a tenant's messages that [Space.InTimer] names. The tenant is a token.
func (s Space) InTimersOfTenant(appToken string) string {
	return s.prefix + ".timer.in.*.*." + appToken + ".>"
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
