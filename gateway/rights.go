package gateway

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/internal/denied"
)

// rights are the subscriptions of a gateway that the server denies its user. The server reports a denial next to the subscription, which
// itself only gets nothing: the gateway would look ready, and miss live events or stop requests. A denial lasts as long as the connection,
// since nats.go subscribes again only when it connects again.
type rights struct {
	nc       *nats.Conn
	logger   *slog.Logger
	subjects []string

	mu     sync.Mutex
	denied map[string]uint64 // by subject: how often the connection was made again before
}

// watchRights notes denials until stop. The handler of the connection stays, and passes everything to the one before it.
func watchRights(nc *nats.Conn, logger *slog.Logger, subjects ...string) (r *rights, stop func()) {
	r = &rights{nc: nc, logger: logger, subjects: subjects, denied: map[string]uint64{}}
	var watching atomic.Pointer[rights]
	watching.Store(r)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if r := watching.Load(); r != nil {
			r.note(err)
		}
		if before != nil {
			before(nc, sub, err)
		}
	})
	return r, func() { watching.Store(nil) }
}

// rightsFix follows the name of the right that is missing.
const rightsFix = "connect as the user gateway (turnctl nats-config prints its rights)"

// note logs a denial once for each connection.
func (r *rights) note(err error) {
	at := slices.IndexFunc(r.subjects, func(subject string) bool { return denied.Subscription(err, subject) })
	if at < 0 {
		return
	}
	subject, connection := r.subjects[at], r.nc.Stats().Reconnects
	r.mu.Lock()
	before, known := r.denied[subject]
	r.denied[subject] = connection
	r.mu.Unlock()
	if !known || before != connection {
		r.logger.Error("the server denies this user a right that a gateway needs: "+rightsFix, "right", "subscribe to "+subject)
	}
}

// err returns what the server denies the connection, and how to fix it, nil if nothing.
func (r *rights) err() error {
	connection := r.nc.Stats().Reconnects
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.denied, func(_ string, at uint64) bool { return at != connection })
	if len(r.denied) == 0 {
		return nil
	}
	return fmt.Errorf("the server denies this user to subscribe to %s: %s", strings.Join(slices.Sorted(maps.Keys(r.denied)), ", "), rightsFix)
}
