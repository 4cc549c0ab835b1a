// Package denied remembers what a NATS server denies a connection. The server reports it outside of the
// request, which itself just gets no answer: without this, a missing right looks like a slow server.
// denied.go collects the denials, context.go ends the context of a request that needs a denied right.
package denied

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// most is how many denials are remembered; whatever else is denied at that time is of the same kind.
const most = 16

// Denials of a connection. The zero value is ready for use.
type Denials struct {
	mu   sync.Mutex
	seen map[right]time.Time // when last
}

// Watch begins to remember what the server denies nc, next to any handler of errors that it has, until
// stop. Only subjects below prefix, our own, count, so that a requester cannot make a denial by asking
// for an answer elsewhere. Subjects that begin with one of except do not count: what the owner of the connection
// can do without.
//
// A connection has one handler of errors and several workers may share it, so that stop must
// not take away what others have put in its place meanwhile: the handler stays, and only
// passes errors on.
func (d *Denials) Watch(nc *nats.Conn, prefix string, except ...string) (stop func()) {
	var watching atomic.Pointer[Denials]
	watching.Store(d)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if d := watching.Load(); d != nil {
			d.note(err, prefix, except)
		}
		if before != nil {
			before(nc, sub, err)
		}
	})
	return func() { watching.Store(nil) }
}

// right is what the server denies: to publish or subscribe to a subject.
type right struct {
	publish bool
	subject string
}

// String implements [fmt.Stringer].
func (r right) String() string {
	if r.publish {
		return "publish to " + r.subject
	}
	return "subscribe to " + r.subject
}

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// parse returns the right that an error of a connection is about, if it is a denial.
func parse(err error) (right, bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return right{}, false
	}
	m := violation.FindStringSubmatch(err.Error())
	if m == nil {
		return right{}, false
	}
	return right{strings.EqualFold(m[1], "publish"), m[2]}, true
}

// Publish reports whether an error of a connection is the denial to publish to a subject.
func Publish(err error, subject string) bool {
	r, ok := parse(err)
	return ok && r.publish && r.subject == subject
}

// Subscription reports whether an error of a connection is the denial to subscribe to a subject.
func Subscription(err error, subject string) bool {
	r, ok := parse(err)
	return ok && !r.publish && r.subject == subject
}

func (d *Denials) note(err error, prefix string, except []string) {
	r, ok := parse(err)
	if !ok {
		return
	}
	begins := func(prefix string) bool { return strings.HasPrefix(r.subject, prefix) }
	ours := slices.ContainsFunc([]string{"$JS.", "$KV.", "$O.", "$SRV.", prefix + "."}, begins)
	if r.publish && !ours || slices.ContainsFunc(except, begins) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[right]time.Time{}
	}
	if _, known := d.seen[r]; known || len(d.seen) < most {
		d.seen[r] = time.Now()
	}
}

// names returns what rights are called: "publish to <subject>".
func names(rights []right) []string {
	all := make([]string, len(rights))
	for i, r := range rights {
		all[i] = r.String()
	}
	return all
}

// recent returns what was denied within the last while, sorted.
func (d *Denials) recent(while time.Duration) []right {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.seen, func(_ right, at time.Time) bool { return time.Since(at) > while })
	return slices.SortedFunc(maps.Keys(d.seen), func(a, b right) int { return strings.Compare(a.String(), b.String()) })
}

// Err returns what was denied within the last while and how to fix it, or nil.
func (d *Denials) Err(while time.Duration) error {
	lately := d.recent(while)
	if len(lately) == 0 {
		return nil
	}
	fix := "connect as a user whose role has that permission, or add it (turnctl nats-config prints the rights of each role)"
	if slices.ContainsFunc(lately, right.inbox) {
		fix = "set --inbox-prefix to the inbox prefix of the user"
	}
	return fmt.Errorf("the server denies this user to %s: %s", strings.Join(names(lately), ", to "), fix)
}

// Explain adds to an error what the server has just denied, which is likely its reason.
func (d *Denials) Explain(err error) error {
	if err == nil {
		return nil
	}
	if denied := d.Err(time.Minute); denied != nil {
		return fmt.Errorf("%w; %w", err, denied)
	}
	return err
}
