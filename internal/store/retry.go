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
	"github.com/oneturn/oneturn/internal/pause"
)

// This file decides how long work on blobs and documents is repeated: until there is an outcome (Retries), at most as
// long as the lease and the tools of the worker permit (Context), and not at all if a bucket refuses it for good (Refused).

// Pauses of work outside the journal, that is, on blobs and context variables.
const (
	// writePause is how long to wait before it is tried again.
	writePause = 200 * time.Millisecond
	// retryLog is how often the log reports that an operation is still retried.
	retryLog = 30 * time.Second
	// drainWrite is how long it is still tried after the tools of the worker were stopped.
	drainWrite = time.Second
)

// Retries repeats reads and writes outside the journal that have no outcome, and reports them. The zero value
// reports nothing.
type Retries struct {
	Metrics *metrics.Metrics
	Logger  *slog.Logger
	// Pause waits between two tries, or returns the cause with which ctx ends. Nil is 200 ms.
	Pause func(ctx context.Context) error
}

// ErrContended is the error of a write that another writer preceded. It is retried and not logged.
var ErrContended = errors.New("another writer was faster")

// Decided reports whether trying again cannot help.
func Decided(err error) bool {
	return err == nil || errors.Is(err, idempotency.ErrRefused) || errors.Is(err, ErrBlobGone) ||
		errors.Is(err, events.ErrTooLarge) || errors.Is(err, events.ErrStateCorrupt)
}

// Until tries until there is an outcome, or ctx ends: then its cause is in the error.
func (r Retries) Until(ctx context.Context, bucket, object string, try func() error) error {
	var logged time.Time
	for {
		err := try()
		if Decided(err) {
			return err
		}
		if !errors.Is(err, ErrContended) && ctx.Err() == nil {
			r.report(bucket, object, err, &logged)
		}
		if errPause := r.pause(ctx); errPause != nil {
			return errors.Join(errPause, err)
		}
	}
}

func (r Retries) report(bucket, object string, err error, logged *time.Time) {
	if r.Metrics != nil {
		r.Metrics.StoreRetries.WithLabelValues(bucket).Inc()
	}
	if now := time.Now(); r.Logger != nil && now.Sub(*logged) >= retryLog {
		*logged = now
		r.Logger.Warn("a bucket does not answer; it is retried", "bucket", bucket, "object", object, "err", events.LogText(err))
	}
}

func (r Retries) pause(ctx context.Context) error {
	if r.Pause != nil {
		return r.Pause(ctx)
	}
	return pause.For(ctx, writePause)
}

// Context returns the context of work outside the journal: it ends with the lease, and soon after the context of
// the tools, with the same cause, such as the drain of the worker. What is not done by then is done by the next
// worker, or the response reports that it was not.
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

// Refused returns the error of a write that a bucket refuses, and will refuse again unless its limits change, nil if
// err does not decide that. A full disk or account does not: the journal waits for room then, too.
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
