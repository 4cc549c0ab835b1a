package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// Pauses of work outside the journal, that is, on blobs and context variables.
const (
	// writePause is how long to wait before it is tried again.
	writePause = 200 * time.Millisecond
	// retryLog is how often a line of the log says that it is still tried.
	retryLog = 30 * time.Second
	// drainWrite is how long it is still tried after the worker has told its tools to stop.
	drainWrite = time.Second
)

// Retries tells of reads and writes outside the journal that have no outcome. The zero value
// tells nobody.
type Retries struct {
	Metrics *metrics.Metrics
	Logger  *slog.Logger
	// Pause waits between two tries, or returns the cause with which ctx ends. Nil is 200 ms.
	Pause func(ctx context.Context) error
}

// errContended says that somebody else was first; that is no fault.
var errContended = errors.New("somebody else has written in between")

// decided reports whether trying again cannot help.
func decided(err error) bool {
	return err == nil || errors.Is(err, idempotency.ErrRefused) || errors.Is(err, errNoArgs) ||
		errors.Is(err, events.ErrTooLarge) || errors.Is(err, events.ErrStateCorrupt)
}

// until tries until there is an outcome, or ctx ends: then its cause is in the error.
func (r Retries) until(ctx context.Context, bucket, object string, try func() error) error {
	var said time.Time
	for {
		err := try()
		if decided(err) {
			return err
		}
		if !errors.Is(err, errContended) && ctx.Err() == nil {
			r.tell(bucket, object, err, &said)
		}
		if errPause := r.pause(ctx); errPause != nil {
			return errors.Join(errPause, err)
		}
	}
}

func (r Retries) tell(bucket, object string, err error, said *time.Time) {
	if r.Metrics != nil {
		r.Metrics.StoreRetries.WithLabelValues(bucket).Inc()
	}
	if now := time.Now(); r.Logger != nil && now.Sub(*said) >= retryLog {
		*said = now
		r.Logger.Warn("a bucket does not answer; it is tried again", "bucket", bucket, "object", object, "err", events.LogText(err))
	}
}

func (r Retries) pause(ctx context.Context) error {
	if r.Pause != nil {
		return r.Pause(ctx)
	}
	t := time.NewTimer(writePause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// outside is the context of work outside the journal: that of the lease, and it ends soon
// after that of the tools, with the same cause, such as [ErrDraining]. What is left undone then
// is done by the next worker, or the response says that it was not.
func outside(lease, tools context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(lease)
	stop := context.AfterFunc(tools, func() {
		cause := context.Cause(tools)
		time.AfterFunc(drainWrite, func() { cancel(cause) })
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// shrink makes a blob of a payload that no record should hold. Most payloads are small and
// cost nothing here.
func (h *Handlers) shrink(lease, tools context.Context, key subjects.Key, kind string, value any, data []byte) (any, error) {
	if h.Blobs.Inline(len(data)) {
		return value, nil
	}
	if kind != events.KindToolCall { // that was counted with its message
		h.addRoom(key.App, len(data))
	}
	ctx, done := outside(lease, tools)
	defer done()
	return h.Blobs.Shrink(ctx, key, kind, value, data)
}

// refused returns the error of a write that a bucket has decided against and always will
// unless its limits change, nil if err decides nothing. A disk or an account that is full is
// no such decision: the journal waits for room then, too.
func refused(err error, bucket, fix string) error {
	why := jsapi.Refused(err)
	if why == "" {
		return nil
	}
	return refusal(err, "bucket %s %s: %s", bucket, why, fix)
}

// refusal is the error of what can never be stored; its text is for the response.
func refusal(cause error, format string, args ...any) error {
	return &events.Error{
		Code: events.CodeTooLarge, Msg: fmt.Sprintf(format, args...), Err: errors.Join(idempotency.ErrRefused, cause),
	}
}

// reason is the text of an error for a response.
func reason(err error) string {
	var e *events.Error
	switch {
	case errors.As(err, &e) && e.Msg != "":
		return e.Msg
	case errors.Is(err, ErrDraining):
		return "the worker stopped before the store had answered"
	}
	return err.Error()
}

// unstorable returns the code with which a turn ends when what its tool returned or changed
// is not stored because of err, "" when its message comes back instead.
func unstorable(t *turn, err error) events.Code {
	switch {
	case errors.Is(err, events.ErrStateCorrupt):
		return events.CodeStateCorrupt
	case decided(err):
		return events.CodeTooLarge
	case errors.Is(err, ErrDraining) && t.Effect == bindings.EffectUnsafe: // nobody runs it again
		return events.CodeInterrupted
	}
	return ""
}

// comesBack is what becomes of a message whose work outside the journal has no outcome.
func (h *Handlers) comesBack(t *turn, what string, err error) Disposition {
	h.often(t.m, slog.LevelWarn, "the message comes back", what, "why", what, "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", events.LogText(err))
	if errors.Is(err, ErrDraining) {
		return nakAfter(0)
	}
	return leave()
}
