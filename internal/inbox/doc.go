// Package inbox pulls messages from a JetStream work queue for a fixed number of slots, keeps
// every message it holds in progress, and hands each to a handler that settles it.
//
// It pulls for free slots only, and ahead of them while messages are handled fast, so that a
// slow worker hoards nothing. One message sequence is handled once at a time in a process: a
// redelivery of one that still runs here is left alone. [Inbox.Run] drains when its context
// ends.
package inbox
