package subjects

import (
	"fmt"
	"strings"
)

// maxReply bounds a reply subject in bytes.
const maxReply = 256

// accountReplies is what the server puts in place of the reply subject of a request that comes
// from another account. It maps each such subject to one reply and drops all others.
const accountReplies = "_R_."

// WithReplies returns s with other prefixes of inboxes than [DefaultInboxes], see
// [Space.MayReply]. Each is one or more plain tokens joined by dots, at most 64 characters, and
// none is the prefix of s or below it. No prefixes leave the default.
func (s Space) WithReplies(prefixes ...string) (Space, error) {
	for _, p := range prefixes {
		switch {
		case len(p) > MaxToken || !prefixPattern.MatchString(p):
			return Space{}, fmt.Errorf("subjects: reply prefix %.80q is not one or more of [A-Za-z0-9_-] joined by dots, at most 64 characters: try %q", p, DefaultInboxes)
		case strings.HasPrefix(p+".", s.prefix+"."):
			return Space{}, fmt.Errorf("subjects: reply prefix %q is within %q, where turns are published: try %q", p, s.prefix, DefaultInboxes)
		}
	}
	s.replies = strings.Join(prefixes, ",")
	return s, nil
}

// MayReply reports whether a worker may publish a reply to a subject that a client has
// chosen: with the rights of the worker it could reach what that client cannot. The subject has to be an inbox.
// It begins with a prefix ("_INBOX" unless [Space.WithReplies] has set others), which a name may
// follow ("_INBOX_reader"), has at least one more token and no wildcard, and is not below the
// prefix of s.
func (s Space) MayReply(subject string) bool {
	if len(subject) > maxReply || strings.HasPrefix(subject, s.prefix+".") || !isPlain(subject) {
		return false
	}
	for prefix := range strings.SplitSeq(s.replyPrefixes(), ",") {
		if within(subject, prefix) {
			return true
		}
	}
	return strings.HasPrefix(subject, accountReplies)
}

func (s Space) replyPrefixes() string {
	if s.replies == "" {
		return DefaultInboxes
	}
	return s.replies
}

// within reports whether an inbox has a prefix: as it is, or with "_" and a name.
func within(inbox, prefix string) bool {
	rest, ok := strings.CutPrefix(inbox, prefix)
	name, _, more := strings.Cut(rest, ".")
	return ok && more && (name == "" || name[0] == '_' && prefixPattern.MatchString(name))
}

// isPlain reports whether a subject has no empty token, no wildcard and printable ASCII only.
func isPlain(subject string) bool {
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" || strings.ContainsAny(token, "*>") {
			return false
		}
	}
	return strings.IndexFunc(subject, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
