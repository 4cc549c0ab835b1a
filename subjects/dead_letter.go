package subjects

import (
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// DeadStream holds dead letters.
func (s Space) DeadStream() string { return s.upper + "_DEAD" }

// DeadSubjects matches all dead letters.
func (s Space) DeadSubjects() string { return s.prefix + ".dead.>" }

// DeadOf is the subject of the dead letter of a message that came on subject. Its tenant is the one
// that the sender has the right to publish for, "-" if there is none; what the message itself claims
// does not count. A kind that workers do not handle is "unknown", so that no sender adds subjects
// without end.
func (s Space) DeadOf(subject string) string {
	app, kind := s.InSender(subject)
	if app == "" {
		app = Absent
	}
	if !slices.Contains(inKinds, kind) {
		kind = "unknown"
	}
	return s.prefix + ".dead." + app + "." + kind
}

// inKinds are the kinds of inbound messages that workers handle.
//
//nolint:gochecknoglobals // a read-only list
var inKinds = []string{
	events.KindStructuredOutputReady, events.KindAgentMessage, events.KindUserMessage, events.KindPlanReady, events.KindRetry, events.KindToolCallResponse, events.KindCancel, events.KindResume, events.KindExpire,
}

// InKinds returns the kinds of inbound messages that workers handle.
func InKinds() []string { return slices.Clone(inKinds) }

// ParseDead parses the subject of a dead letter into tokens. It reports false for any other
// subject.
func (s Space) ParseDead(subject string) (app, kind string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".dead.")
	if !ok {
		return "", "", false
	}
	app, kind, ok = strings.Cut(rest, ".")
	if !ok || app == "" || kind == "" || strings.Contains(kind, ".") {
		return "", "", false
	}
	return app, kind, true
}

// DeadBlobs is how many blobs the dead letters of a tenant and a kind have. A newer dead
// letter takes the blob of an older one.
const DeadBlobs = 64

// DeadBlob is the name of the blob that may hold the bytes of a dead letter, by its tokens as
// [Space.ParseDead] returns them and the sequence of the message in its stream.
func DeadBlob(app, kind string, seq uint64) string {
	return "dead." + app + "." + kind + "." + strconv.FormatUint(seq%DeadBlobs, 10)
}
