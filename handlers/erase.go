package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
)

// Bounds of erasing a message that was a secret answer.
const (
	// ErasePause is how long after a failure it is tried again.
	ErasePause = 5 * time.Second
	// EraseFor is how old a message may be and still be kept for that; then it is acknowledged.
	EraseFor = time.Hour
	// eraseTimeout bounds one try.
	eraseTimeout = 5 * time.Second
)

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
