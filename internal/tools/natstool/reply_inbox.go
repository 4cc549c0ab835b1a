package natstool

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/subjects"
)

// The subscription of a tool: add gives a conversation its subject, deliver passes messages to it and refuses
// operations of calls that are over.

// inbox receives for all calls of a tool, with one subscription. Each conversation has a separate
// subject that cannot be guessed.
type inbox struct {
	conn     *nats.Conn
	mayReply func(subject string) bool // Options.MayReply

	mu        sync.Mutex
	sub       *nats.Subscription
	prefix    string        // of the subjects, with the dot
	gone      chan struct{} // closed when nothing comes any more
	receivers map[string]func(*nats.Msg)
}

// add returns a subject whose messages take gets, and a channel that is closed when nothing can
// arrive any more. take is called by one goroutine and must not wait.
func (b *inbox) add(take func(*nats.Msg)) (subject string, gone <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sub == nil || !b.sub.IsValid() {
		if err := b.subscribe(); err != nil {
			return "", nil, err
		}
	}
	subject = b.prefix + rand.Text()
	b.receivers[subject] = take
	return subject, b.gone, nil
}

func (b *inbox) subscribe() error {
	prefix := subjects.NewToolInbox(b.conn.Opts.InboxPrefix) + "."
	sub, err := b.conn.Subscribe(prefix+"*", b.deliver)
	if err != nil {
		return fmt.Errorf("subscribe to %s*: %w", prefix, err)
	}
	gone := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(gone) })
	b.sub, b.prefix, b.gone, b.receivers = sub, prefix, gone, map[string]func(*nats.Msg){}
	return nil
}

// remove ends the use of a subject.
func (b *inbox) remove(subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.receivers, subject)
}

// deliver passes a message to its conversation. An operation of a call that is over is
// refused; other late messages are dropped.
func (b *inbox) deliver(m *nats.Msg) {
	b.mu.Lock()
	take := b.receivers[m.Subject]
	b.mu.Unlock()
	switch {
	case take != nil:
		take(m)
	case m.Header.Get(target.HeaderKind) != "" && b.mayReply(m.Reply):
		_ = refuse(b.conn, m.Reply, events.CodeCancelled, callOver) // the service may be gone too
	}
}

// close unsubscribes, and waits until nothing is delivered any more.
func (b *inbox) close() {
	b.mu.Lock()
	sub, gone := b.sub, b.gone
	b.sub = nil
	b.mu.Unlock()
	if sub == nil {
		return
	}
	_ = sub.Unsubscribe() // its error means that it has ended before
	<-gone
}

// mayReply is the default of Options.MayReply.
func mayReply(subject string) bool {
	space, err := subjects.New(subjects.DefaultPrefix)
	return err == nil && space.MayReply(subject)
}

// plainSubject reports whether one can publish to a subject.
func plainSubject(subject string) bool {
	if subject == "" || strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '*' || r == '>' }) {
		return false
	}
	return !strings.HasPrefix(subject, ".") && !strings.HasSuffix(subject, ".") && !strings.Contains(subject, "..")
}
