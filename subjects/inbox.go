package subjects

import (
	"crypto/rand"
	"strings"
)

// DefaultInboxes is the inbox prefix of a connection without a configured one.
const DefaultInboxes = "_INBOX"

// WorkerInboxes is the inbox prefix of workers in the accounts that package accounts prints. The rights
// of services name it, too: they reply below it with _tools at its end, see [NewToolInbox].
const WorkerInboxes = "_INBOX_worker"

// randomToken is the length of a random token, and randomAlphabet its alphabet, both as in
// [rand.Text].
const (
	randomToken    = 26
	randomAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// PrivateInboxes adds a random token to an inbox prefix. A connection with the result as its
// prefix has inboxes that cannot be guessed, although the names after the prefix are only unique.
func PrivateInboxes(prefix string) string { return inboxBase(prefix) + "." + rand.Text() }

// NewInbox returns an inbox for a connection with a prefix, "" for the default one. It cannot be
// guessed, and it does not reveal the random token of [PrivateInboxes].
func NewInbox(prefix string) string { return PrivateInboxes(prefix) }

// NewToolInbox is [NewInbox] for the messages of services that are tools. Its prefix differs from
// the prefix of all other inboxes of the connection (_INBOX_worker_tools for _INBOX_worker), so that
// services can have the right to publish there and nowhere else.
func NewToolInbox(prefix string) string { return inboxBase(prefix) + "_tools." + rand.Text() }

// inboxBase is the prefix without the token of [PrivateInboxes].
func inboxBase(prefix string) string {
	if prefix == "" {
		return DefaultInboxes
	}
	at := strings.LastIndexByte(prefix, '.')
	if at <= 0 || len(prefix)-at-1 != randomToken || strings.Trim(prefix[at+1:], randomAlphabet) != "" {
		return prefix
	}
	return prefix[:at]
}
