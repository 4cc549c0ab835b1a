package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/budget"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/serverclock"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// The configuration of handlers, and the entry of every message: Handle decodes it and calls the handler of its kind. The
// other functions serve more than one handler: logs, dead letters, the limits of a process.

// ErrDraining is the cause with which a worker ends the context of its tools when it stops.
var ErrDraining = errors.New("the worker is stopping")

// errCancelled is the cause with which a cancel ends the context of a tool.
var errCancelled = &events.Error{Code: events.CodeCancelled, Msg: "the turn was cancelled"}

// Bounds of what a worker remembers, and of deliveries.
const (
	cancelledKeys = 1_024
	// cancelledFor is how long a live copy of a cancel is remembered for turns that begin to run: later ones find the
	// stored cancel.
	cancelledFor = 10 * time.Minute
	// graceNaks is how often a message of an unknown workflow is nacked within the binding grace: often enough that one
	// of many workers that knows it receives it.
	graceNaks = 40
	// maxDeliveries of the message of a turn that no worker could claim. The counter of the server does not distinguish naks
	// from workers that died, so it allows for both. Messages that end an open turn (answers, expiries, cancels, resumes)
	// have no such limit: they wait for the journal.
	maxDeliveries = 10 + graceNaks
)

// Config holds the dependencies and settings of handlers. All fields without a default are required.
type Config struct {
	run.Config // of the tools that run

	Engine    *engine.Engine
	Tool      func(*bindings.Binding) (tools.Invoker, error) // finds the tool of a binding
	Variables variables.Store
	Dead      deadletter.Store

	// Names returns how the names of a tenant's records are listed, for ids that do not lead to their turn, see
	// [query.Reader.Names]. The server goes through the names of a whole chat for it, hence a list fails with a
	// [searchbudget.BusyError] when the tenant has used up its budget. Nil finds none: answers and cancels of turns with a
	// run id have to name it.
	Names func(appToken string) query.Lister

	// Full reports whether the store is nearly full, so that no new turns are claimed, and when it last
	// was; the zero time is never. Nil: it never is.
	Full func() (now bool, last time.Time)

	// StoreLeft is how many bytes the store has left until it counts as nearly full, less than 0 if it is, and how many
	// beyond that cancels may use, as of a check with a number from 1 on; number 0: this is not known. Tenants
	// have shares of it. Nil: it never is.
	StoreLeft func() (left, spare int64, look uint64)

	// LeaseHeld reports whether the message of a lease is still in its stream; resumes need it.
	LeaseHeld func(ctx context.Context, l idempotency.Lease) (bool, error)

	// MaxAckPending is how many messages the workers of the pool may hold together, from the configuration of its
	// consumer. This process nacks with a delay, and keeps for questions and limits, a share of them.
	// Defaults to 20,000; [Handlers.SetMaxAckPending] changes it.
	MaxAckPending int
	// Defer has the server publish a message again later that has to wait beyond that share. Nil nacks it all the same.
	Defer func(ctx context.Context, d deferral.Message) error
	// DeferralQuota reports whether a message of a tenant, a token, with so many bytes of data and of its sender's headers may
	// be deferred, also with an error, which is logged; see [deferral.Quota.Take]. Nil: any may.
	DeferralQuota func(ctx context.Context, app string, bytes int) (bool, error)

	// BindingGrace is how old an event may be and still wait for a worker that knows its
	// workflow. MaxEventAge is how old one may be and still run.
	BindingGrace, MaxEventAge time.Duration
	// Alone reports whether no other worker can have the workflow; nil means that it is not known.
	Alone func() bool
}

// Handlers handles inbound messages. It is safe for concurrent use.
type Handlers struct {
	Config

	runs           *run.Registry
	cancelCopies   *recent.Set[string] // names of turns of which the live copy of a cancel has arrived
	lines          throttle.Lines
	missed         *recent.Set[string] // questions that no call of their chat has asked
	buffers        buffers
	schemas        answers.Schemas
	catalog        atomic.Pointer[program.Catalog] // of the binding set that turns were run with last, nil before a program
	shares         store.Shares
	waiting        *budget.Budget
	retries        *budget.Budget     // turns that are read to be retried
	erased         *budget.Budget     // messages of which it is not known whether they are secret
	pendingResults atomic.Int64       // results that are not stored and whose lease is lost
	clock          *serverclock.Clock // measures the ages of messages

	maxAckPending atomic.Int64 // of the consumer, as it was read last
}

// New returns handlers.
func New(c Config) *Handlers {
	h := &Handlers{
		Config: c, waiting: budget.New(0), erased: budget.New(erasures), retries: budget.New(retryReads),
		missed:       recent.New[string](missedQuestions, missedFor),
		cancelCopies: recent.New[string](cancelledKeys, cancelledFor),
	}
	h.runs = run.NewRegistry(&h.Config.Config, &h.lines, h.schemas.CheckSchema, h.shrink)
	h.SetMaxAckPending(c.MaxAckPending)
	h.clock = serverclock.New(h.serverTime, func() time.Time { return h.Now() })
	return h
}

// Handle handles one message. ctx ends, with a cause such as [ErrDraining], when the tool has to stop; losing the lease
// does not stop a tool. After a panic the message is redelivered.
func (h *Handlers) Handle(ctx context.Context, in *inbound.Message) (d inbound.Disposition) {
	m := &message{Message: *in, tools: ctx}
	defer func() {
		if p := recover(); p != nil {
			h.Metrics.Panics.Inc()
			h.logThrottled(m, slog.LevelError, "a handler panicked; the message will be redelivered", "", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			d = inbound.Left()
		}
		if d.Do == inbound.Ack && h.mustErase(m) {
			d = inbound.Disposition{Do: inbound.Erase, Delay: h.eraseRetryDelay(m)}
		}
	}()
	var errOpen error
	if m.State, errOpen = deferral.Read(&m.Message, h.Space, h.SecretKeys); m.Closed {
		m.mayHold = m.Turns
	}
	at, ok := h.Space.ParseIn(m.Subject)
	if !ok { // not a subject of messages: the body is refused, and its sender notified
		at.App, at.Kind = h.Space.InSender(m.Subject)
	}
	m.Private = events.AnswerKind(at.Kind)
	m.secret = m.Private // until its question is known
	if m.Lease.Delivery > 1 {
		h.Metrics.Redeliveries.Inc()
	}
	var err error
	if m.clock, err = h.clock.Read(m.Held); err != nil {
		return h.redeliver(m, "the time of the server cannot be read", err)
	}
	if errOpen != nil {
		return h.requeueSealed(m, errOpen)
	}
	if d, requeued := h.requeueUnread(m, at); requeued {
		return d
	}
	body, err := events.Parse(m.Data)
	switch {
	case err != nil && events.TurnKind(at.Kind):
		return h.undecoded(ctx, m, at.Kind, err)
	case err != nil:
		return h.deadUnreadable(m, err)
	}
	if answers := events.AnswerKind(body.Kind); answers || m.Private && body.Kind == "" {
		m.Private, m.secret = true, true
		return h.answer(ctx, m, at, body)
	}
	switch body.Kind {
	case "", events.KindStructuredOutputReady, events.KindPlanReady, events.KindRetry:
		return h.turn(ctx, m, at, body)
	case events.KindAgentMessage, events.KindUserMessage:
		return h.chatMessage(ctx, m, body)
	case events.KindCancel:
		return h.cancel(ctx, m, body)
	case events.KindResume:
		return h.resume(ctx, m, body)
	case events.KindExpire:
		return h.expire(ctx, m, at, body)
	}
	return h.deadLetter(m, deadletter.ReasonUnknownKind, fmt.Errorf("kind %.80q is not one of %s", body.Kind, strings.Join(subjects.InKinds(), ", ")))
}

// AckSeen has the run of a turn read its question when ack, the live copy of the record that closes it, arrives.
func (h *Handlers) AckSeen(ack subjects.Record) { h.runs.AckSeen(ack) }

// PollQuestions has all runs that wait for answers read their questions: live copies may have been lost.
func (h *Handlers) PollQuestions() { h.runs.PollQuestions() }

// Drain parks all runs that wait for answers, and all that begin to wait later: the worker is about to stop.
func (h *Handlers) Drain() { h.runs.Drain() }

// Running returns how many tools are running.
func (h *Handlers) Running() int { return h.runs.Len() }

func (h *Handlers) serverTime(ctx context.Context) (time.Time, error) {
	if h.ServerTime == nil {
		return h.Now(), nil
	}
	return h.ServerTime(ctx)
}

// logThrottled logs the outcome of a message. Its tenant can send any number of messages, so only some lines of a kind
// are written in a minute, and the next one has the number of the omitted ones, see [throttle.Lines]; the metrics
// count each. A kind, like a reason, is one of few values.
func (h *Handlers) logThrottled(m *message, level slog.Level, msg, kind string, args ...any) {
	app, _ := h.Space.InSender(m.Subject)
	h.lines.Log(m.Held, h.Logger, h.Now(), msg+" "+kind, app, throttle.Several, level, msg, args...)
}

// defaultMaxAckPending is how many messages the workers of a pool hold together if the consumer does not specify it: the
// value that package provision sets.
const defaultMaxAckPending = 20_000

// waitingShare is the share of a process in the messages that its pool may hold, one in so many, for messages that are
// nacked with a delay. Six workers that use up all of their shares, see [run.Registry.Resize], leave a quarter to turns
// that run.
const waitingShare = 64

// SetMaxAckPending sets how many messages the workers of the pool may hold together, after a change of its consumer, and
// with it the shares of this process. 0 or less is unknown, or no limit: then it counts as 20,000. Messages that hold a
// place keep it.
func (h *Handlers) SetMaxAckPending(n int) {
	if n <= 0 {
		n = defaultMaxAckPending
	}
	if before := h.maxAckPending.Swap(int64(n)); before == int64(n) {
		return
	} else if before > 0 {
		h.Logger.Info("max_ack_pending of the consumer has changed; the shares of this worker change with it",
			"before", before, "max_ack_pending", n)
	}
	h.waiting.Resize(n / waitingShare)
	h.runs.Resize(n)
}

// message is a delivery with what the handlers have learned about it.
type message struct {
	inbound.Message
	deferral.State // how often the message was deferred before, and its age

	// tools ends when the tools of the worker have to stop, see [Handlers.Handle].
	tools context.Context //nolint:containedctx // the life of the worker, not of a call

	// clock is the server's when the message was received; the zero value stands for the clock of the
	// process.
	clock serverclock.Reading

	// secret is set if the message may hold the answer to a secret question: it is erased when it is acknowledged.
	secret bool
	// asksSecret is set if it answers a question that is known to be secret.
	asksSecret bool

	// unfinished is set if the message is acknowledged before its turn has run, which may still run: the server publishes the message
	// again, or it is a dead letter.
	unfinished bool

	// mayHold are the turns whose lease the message may be, as far as known: before it is acknowledged without a response, the
	// journal is read for a later delivery that owns one of them.
	mayHold []subjects.Key
}

// deliveries is how often a message was delivered, including the deliveries before it was deferred.
func (m *message) deliveries() uint64 { return m.Before + m.Lease.Delivery }

// deadLetter moves a message to the dead letters, with its bytes and the reason. The message is acknowledged only when
// the dead letter is stored.
func (h *Handlers) deadLetter(m *message, reason string, cause error) inbound.Disposition {
	if err := h.Dead.Put(m.Held, &m.Message, reason, cause); err != nil {
		h.logThrottled(m, slog.LevelError, "a dead letter could not be stored; the message will be redelivered", reason, "reason", reason, "seq", m.Lease.Seq, "err", err)
		return inbound.Left()
	}
	h.Metrics.Dead.WithLabelValues(reason).Inc()
	h.logThrottled(m, slog.LevelWarn, "dead letter", reason, "reason", reason, "seq", m.Lease.Seq, "bytes", len(m.Data), "err", events.LogText(cause))
	return inbound.Acked()
}

func tooLarge(what string, err error) error {
	msg := "the " + what + " of the tool are too large to store"
	var e *events.Error
	if errors.As(err, &e) && e.Msg != "" && errors.Is(err, idempotency.ErrRefused) { // it names the fix
		msg = "the " + what + " of the tool cannot be stored: " + e.Msg
	}
	return &events.Error{Code: events.CodeTooLarge, Msg: msg, Err: err}
}
