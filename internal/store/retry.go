package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/metrics"
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

// ErrContended says that somebody else was first; that is no fault.
var ErrContended = errors.New("somebody else has written in between")

// Decided reports whether trying again cannot help.
func Decided(err error) bool {
	return err == nil || errors.Is(err, idempotency.ErrRefused) || errors.Is(err, ErrBlobGone) ||
		errors.Is(err, events.ErrTooLarge) || errors.Is(err, events.ErrStateCorrupt)
}

// Until tries until there is an outcome, or ctx ends: then its cause is in the error.
func (r Retries) Until(ctx context.Context, bucket, object string, try func() error) error {
	var said time.Time
	for {
		err := try()
		if Decided(err) {
			return err
		}
		if !errors.Is(err, ErrContended) && ctx.Err() == nil {
			r.report(bucket, object, err, &said)
		}
		if errPause := r.pause(ctx); errPause != nil {
			return errors.Join(errPause, err)
		}
	}
}

func (r Retries) report(bucket, object string, err error, said *time.Time) {
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

// Context is the context of work outside the journal: that of the lease, and it ends soon
// after that of the tools, with the same cause, such as [ErrDraining]. What is left undone then
// is done by the next worker, or the response says that it was not.
func Context(lease, tools context.Context) (context.Context, context.CancelFunc) {
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

// Refused returns the error of a write that a bucket has decided against and always will
// unless its limits change, nil if err decides nothing. A disk or an account that is full is
// no such decision: the journal waits for room then, too.
func Refused(err error, bucket, fix string) error {
	why := jsapi.Refused(err)
	if why == "" {
		return nil
	}
	return Refusal(err, "bucket %s %s: %s", bucket, why, fix)
}

// Refusal is the error of what can never be stored; its text is for the response.
func Refusal(cause error, format string, args ...any) error {
	return &events.Error{
		Code: events.CodeTooLarge, Msg: fmt.Sprintf(format, args...), Err: errors.Join(idempotency.ErrRefused, cause),
	}
}
