// Package denied remembers what a NATS server denies a connection. The server says so beside
// the request, which itself just gets no answer: without this, a missing right looks like a
// server that is slow.
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

	"github.com/oneturn/oneturn/subjects"
)

// most is how many denials are remembered at once; what else is denied at that time is of the
// same kind.
const most = 16

// Denials of a connection. The zero value is ready for use.
type Denials struct {
	mu   sync.Mutex
	seen map[string]time.Time // "publish to <subject>" → when last
}

// Watch begins to remember what the server denies nc, beside whatever handles errors already,
// until stop. Prefix is that of our own subjects: nobody else's count, so that a requester
// cannot make a denial by asking for an answer elsewhere.
//
// A connection has one handler of errors and several workers may share it, so that stop must
// not take away what others have put in its place meanwhile: the handler stays, and only
// passes errors on.
func (d *Denials) Watch(nc *nats.Conn, prefix string) (stop func()) {
	var watching atomic.Pointer[Denials]
	watching.Store(d)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if d := watching.Load(); d != nil {
			d.note(err, prefix)
		}
		if before != nil {
			before(nc, sub, err)
		}
	})
	return func() { watching.Store(nil) }
}

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

func (d *Denials) note(err error, prefix string) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	m := violation.FindStringSubmatch(err.Error())
	if m == nil {
		return
	}
	ours := slices.ContainsFunc([]string{"$JS.", "$KV.", "$O.", "$SRV.", prefix + "."}, func(p string) bool { return strings.HasPrefix(m[2], p) })
	if strings.EqualFold(m[1], "publish") && !ours {
		return
	}
	what := map[bool]string{true: "publish to ", false: "subscribe to "}[strings.EqualFold(m[1], "publish")] + m[2]
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[string]time.Time{}
	}
	if _, known := d.seen[what]; known || len(d.seen) < most {
		d.seen[what] = time.Now()
	}
}

// Lately returns what was denied within the last while, sorted: "publish to <subject>".
func (d *Denials) Lately(while time.Duration) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.seen, func(_ string, at time.Time) bool { return time.Since(at) > while })
	return slices.Sorted(maps.Keys(d.seen))
}

// Err says what was denied within the last while and how to mend it, or nil.
func (d *Denials) Err(while time.Duration) error {
	lately := d.Lately(while)
	if len(lately) == 0 {
		return nil
	}
	return fmt.Errorf("the server denies this user to %s: %s", strings.Join(lately, ", to "), fix(lately))
}

// fix returns what helps against denials. A user with inboxes of its own is denied those that every
// connection has by default, and must not be given them: it would read the replies of others.
func fix(denials []string) string {
	for _, what := range denials {
		if strings.HasPrefix(what, "subscribe to "+subjects.DefaultInboxes+".") {
			return "set --inbox-prefix to the inbox prefix of the user"
		}
	}
	return "connect as a user whose role has that permission, or add it (turnctl nats-config prints the rights of each role)"
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
