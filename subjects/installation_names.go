package subjects

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// All names of an installation begin with its prefix, in upper case for streams and buckets. A [Space] holds the
// prefix; its methods here name streams, buckets, consumers and the subjects of inbound messages and events. Files
// next to it have the subjects of one feature each.

// DefaultPrefix is the prefix of all names when none is configured.
const DefaultPrefix = "oneturn"

// DefaultPool is the worker pool that turns go to unless they are routed.
const DefaultPool = "default"

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// Space holds all names under one prefix. Make it with [New]; it is immutable.
type Space struct {
	prefix  string
	upper   string
	replies string // prefixes of inboxes, joined by commas; "" is DefaultInboxes
}

// New returns the names under prefix: one or more plain tokens joined by dots, at most 64
// characters. Streams and buckets carry the prefix in upper case with underscores.
func New(prefix string) (Space, error) {
	if len(prefix) > MaxToken || !prefixPattern.MatchString(prefix) {
		return Space{}, fmt.Errorf("subjects: prefix %.80q is not one or more of [A-Za-z0-9_-] joined by dots, at most 64 characters: try %q", prefix, DefaultPrefix)
	}
	return Space{prefix: prefix, upper: strings.ToUpper(strings.ReplaceAll(prefix, ".", "_"))}, nil
}

// CheckPool reports whether name can be a pool: a plain token of at most 32 characters.
func CheckPool(name string) error {
	if name == Absent || name == "" || len(name) > 32 || Token(name) != name {
		return fmt.Errorf("subjects: pool %.80q is not one of [A-Za-z0-9_-], 1 to 32 characters: try %q", name, DefaultPool)
	}
	return nil
}

// Prefix returns the prefix.
func (s Space) Prefix() string { return s.prefix }

// Account is the name of the product's NATS account.
func (s Space) Account() string { return s.upper }

// Inbound.

// InStream is the work queue that orchestrators publish to.
func (s Space) InStream() string { return s.upper + "_IN" }

// InSubjects matches everything inbound.
func (s Space) InSubjects() string { return s.prefix + ".in.>" }

// InFilter matches what a pool consumes.
func (s Space) InFilter(pool string) string { return s.prefix + ".in." + pool + ".>" }

// WorkerConsumer is the durable consumer of a pool.
func (s Space) WorkerConsumer(pool string) string { return "workers-" + pool }

// InKind matches the messages of one kind that a pool consumes.
func (s Space) InKind(pool, kind string) string { return s.prefix + ".in." + pool + "." + kind + ".>" }

// In is the subject of an inbound message. Ids are tokenised; pool and kind must be plain.
func (s Space) In(pool, kind, app, workflow, chat string) string {
	return s.prefix + ".in." + pool + "." + kind + "." + Token(app) + "." + Token(workflow) + "." + Token(chat)
}

// Inbound is a parsed inbound subject. App, Workflow and Chat are tokens.
type Inbound struct {
	Pool, Kind, App, Workflow, Chat string
}

// ParseIn parses an inbound subject, as [Space.In] makes them. It reports false for any other subject, also for
// one with tokens that no id has.
func (s Space) ParseIn(subject string) (Inbound, bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".in.")
	if !ok {
		return Inbound{}, false
	}
	var in Inbound
	for i, field := range []*string{&in.Pool, &in.Kind, &in.App, &in.Workflow, &in.Chat} {
		token, tail, more := strings.Cut(rest, ".")
		if token == "" || more != (i < 4) {
			return Inbound{}, false
		}
		*field, rest = token, tail
	}
	if CheckPool(in.Pool) != nil || Token(in.Kind) != in.Kind || !isToken(in.App) || !isToken(in.Workflow) || !isToken(in.Chat) {
		return Inbound{}, false
	}
	return in, true
}

// InSender returns the tenant, a token, and the kind for which the sender of a message has the right to publish on
// its inbound subject, also of a subject that [Space.ParseIn] refuses. They are empty if there are none.
func (s Space) InSender(subject string) (app, kind string) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".in.")
	if !ok {
		return "", ""
	}
	_, rest, _ = strings.Cut(rest, ".") // the pool
	kind, rest, _ = strings.Cut(rest, ".")
	app, _, _ = strings.Cut(rest, ".")
	if !isToken(app) {
		app = ""
	}
	return app, kind
}

// Journal, live events, dead letters, request API.

// TurnsBucket is the KV bucket that holds the journal.
func (s Space) TurnsBucket() string { return s.upper + "_TURNS" }

// TurnsStream is the stream of [Space.TurnsBucket].
func (s Space) TurnsStream() string { return "KV_" + s.TurnsBucket() }

// TurnsMirror is the stream that mirrors [Space.TurnsStream] for reads of histories, where an installation has one.
func (s Space) TurnsMirror() string { return s.upper + "_TURNS_MIRROR" }

// JournalSubject is the stream subject of a journal key.
func (s Space) JournalSubject(key string) string { return "$KV." + s.TurnsBucket() + "." + key }

// JournalKeyOf is the inverse of [Space.JournalSubject].
func (s Space) JournalKeyOf(subject string) (string, bool) {
	return strings.CutPrefix(subject, "$KV."+s.TurnsBucket()+".")
}

// EventsPrefix stands before the key of a public record in its live copy.
func (s Space) EventsPrefix() string { return s.prefix + ".events" }

// EventsOfKind matches the live copies of one kind over all turns.
func (s Space) EventsOfKind(kind string) string { return s.prefix + ".events.*.*.*.*." + kind }

// EventKey returns the call that a live copy belongs to. It reports false for other subjects.
func (s Space) EventKey(subject string) (Key, bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".events.")
	if !ok {
		return Key{}, false
	}
	r, ok := ParseKey(public + "." + rest)
	return r.Key, ok
}

// EventOfTurn is the live copy of a record of one call.
func (s Space) EventOfTurn(k Key, kind string) string {
	return s.prefix + ".events." + k.String() + "." + kind
}

// EventsOfChat matches the live copies of one chat. App and chat are ids.
func (s Space) EventsOfChat(app, chat string) string {
	return s.prefix + ".events." + Token(app) + "." + Token(chat) + ".>"
}

// Live is the subject of an event that is published but not stored.
func (s Space) Live(app, chat, kind string) string {
	return s.prefix + ".live." + Token(app) + "." + Token(chat) + "." + kind
}

// LiveEvents matches the events of all chats that are published but not stored.
func (s Space) LiveEvents() string { return s.prefix + ".live.>" }

// LiveChat returns the tenant and the chat, as tokens, of an event on a [Space.Live]. It reports false for other subjects.
func (s Space) LiveChat(subject string) (app, chat string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".live.")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 || !isToken(parts[0]) || !isToken(parts[1]) || parts[2] == "" {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// API is the subject of a request for one tenant, for example verb "turn".
func (s Space) API(app, verb string) string { return s.prefix + ".api." + Token(app) + "." + verb }

// APIForAll is the subject that serves a verb for every tenant.
func (s Space) APIForAll(verb string) string { return s.prefix + ".api.*." + verb }

// APITenant returns the tenant token of a request's subject. It reports false for anything
// that is not a token: a subject that is published to may contain a wildcard.
func (s Space) APITenant(subject string) (string, bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".api.")
	if !ok {
		return "", false
	}
	app, _, ok := strings.Cut(rest, ".")
	if _, _, err := Untoken(app); !ok || err != nil {
		return "", false
	}
	return app, true
}

// APIName is the name of the micro service that answers requests.
func (s Space) APIName() string { return strings.ToLower(s.upper) + "-api" }

// Timers, context and blobs.

// TimersStream holds schedules and what they deliver.
func (s Space) TimersStream() string { return s.upper + "_TIMERS" }

// TimerSubjects matches schedules; nothing consumes them.
func (s Space) TimerSubjects() string { return s.prefix + ".timer.>" }

// DueSubjects matches what schedules deliver.
func (s Space) DueSubjects() string { return s.prefix + ".due.>" }

// TimersConsumer is the durable consumer of what is due.
func (s Space) TimersConsumer() string { return "timers" }

// ContextBucket is the KV bucket of context variables.
func (s Space) ContextBucket() string { return s.upper + "_CONTEXT" }

// ContextKey is the key of a chat's context variables.
func ContextKey(app, chat string) string { return Token(app) + "." + Token(chat) }

// LimitsBucket is the KV bucket of the rates that workers share.
func (s Space) LimitsBucket() string { return s.upper + "_LIMITS" }

// LimitKey is the key of the rate of a tool for all tenants, or for one. Both are ids, and only
// their hashes are in the key.
func LimitKey(tool, tenant string, all bool) string {
	if all {
		return limitHash(tool)
	}
	return limitHash(tool) + "." + limitHash(tenant)
}

func limitHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:22]
}

// BlobsBucket is the object store of payloads too large for a record.
func (s Space) BlobsBucket() string { return s.upper + "_BLOBS" }
