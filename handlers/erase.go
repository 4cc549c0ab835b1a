package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
)

// Bounds of erasing a message that was a secret answer.
const (
	// erasePause is how long after a failure it is tried again.
	erasePause = 5 * time.Second
	// eraseFor is how long a message is kept in the stream for that, by the server's clock; then it is
	// acknowledged.
	eraseFor = time.Hour
	// eraseTimeout bounds one try.
	eraseTimeout = 5 * time.Second
)

// Bounds of erasing messages of which it is not known whether they are secret. Of 64 places that are
// taken for ten seconds a tenant alone gets half: three messages a second, and 32 at once.
const (
	erasures   = 64
	erasureFor = 10 * time.Second
)

// erases reports whether a message that is acknowledged is overwritten in its stream's file as well, for
// which the server writes megabytes and syncs them. Each one is that answers a secret question. Of
// those that answer no question, or cannot be read, nobody knows: a tenant has some of them erased and no
// flood of them, behind which every other tenant would wait. What came sealed tells nobody anything.
func (h *Handlers) erases(m *Message) bool {
	switch {
	case m.asksSecret:
		return m.secret
	case !m.secret, m.sealed:
		return false
	}
	in, _ := h.Space.ParseIn(m.Subject)
	if h.erased.takeFor(in.App, 1, h.Now(), erasureFor) {
		return true
	}
	h.often(m, slog.LevelWarn, "an answer to no known question is acknowledged and not erased: the tenant sends too many", "", "seq", m.Lease.Seq)
	return false
}

// eraseAgain is how long after a failure to erase a message it is tried again, 0 if it is not.
func (h *Handlers) eraseAgain(m *Message) time.Duration {
	if h.serverNow(m).Sub(m.arrived) < eraseFor {
		return erasePause
	}
	return 0
}

// EraseMessage overwrites a message in its stream, which an acknowledgement does not do: the
// bytes of a message that was acknowledged stay in the file until the server makes room. A
// message that is not there any more is fine.
func EraseMessage(nc *nats.Conn, l idempotency.Lease) error {
	const noMessage, noSequence, deleteFailed = 10037, 10043, 10057
	ctx, cancel := context.WithTimeout(context.Background(), eraseTimeout)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.DELETE."+l.Stream, fmt.Appendf(nil, `{"seq":%d}`, l.Seq))
	if err != nil {
		return fmt.Errorf("erase message %d of %s: %w", l.Seq, l.Stream, err)
	}
	var r struct {
		Success bool `json:"success"`
		Error   *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(reply.Data, &r); {
	case err != nil:
		return fmt.Errorf("erase message %d of %s: %w", l.Seq, l.Stream, err)
	case r.Error == nil:
		return nil
	case r.Error.Code == noMessage || r.Error.Code == noSequence || r.Error.Code == deleteFailed && r.Error.Description == "message not found":
		return nil
	}
	return fmt.Errorf("erase message %d of %s: server error %d: %s", l.Seq, l.Stream, r.Error.Code, r.Error.Description)
}
