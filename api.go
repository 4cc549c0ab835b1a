package oneturn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/searches"
	"github.com/oneturn/oneturn/subjects"
)

// Verbs of the request API: subject <prefix>.api.<app>.<verb>.
const (
	VerbTurn    = "turn"    // one turn, see TurnRequest
	VerbHistory = "history" // the events of a chat, see HistoryRequest
	VerbWaits   = "waits"   // questions that wait for a person, see WaitsRequest
	VerbAnswer  = "answer"  // answers a question, see AnswerRequest
	VerbBlob    = "blob"    // a piece of a payload over the inline limit, see BlobRequest
)

// apiVersion is the version of the request API's shapes.
const apiVersion = "1.0.0"

// Bounds of one answer. Only a single record may be larger than pageBytes; the server takes
// the answer because it took the record.
const (
	pageRecords = 16
	pageReads   = 4 * pageRecords // at most, with those that are left out
	pageBytes   = 512 << 10
	apiTimeout  = 5 * time.Second
)

// maxRequest bounds a request in bytes: its ids have at most 1024 each, and an escape of JSON
// takes six.
const maxRequest = 32 << 10

// TurnRequest asks for the public records of one turn of the subject's tenant.
type TurnRequest struct {
	Chat string `json:"chat_id"`
	Run  string `json:"run_id,omitempty"`
	Turn string `json:"turn"` // turn key
	// Fingerprint of the data, in hex: of turns that ran under a reused key (on_key_reuse: run)
	// only the one with this data is read. Empty means all of them.
	Fingerprint string `json:"fingerprint,omitempty"`
	From        uint64 `json:"from,omitempty"` // journal sequence to start at, 0 = the beginning
}

// HistoryRequest asks for events of a chat of the subject's tenant.
type HistoryRequest struct {
	Chat string `json:"chat_id"`
	From uint64 `json:"from,omitempty"` // journal sequence to start at, 0 = the beginning
}

// Page is the answer to both requests: events in the order of their sequences.
type Page struct {
	Records []PageRecord `json:"records"`
	Next    uint64       `json:"next,omitempty"` // From of the next page, 0 when there is none now
}

// PageRecord is one event of the journal.
type PageRecord struct {
	Sequence uint64    `json:"sequence"` // the live copy has it in header Nats-Sequence
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind"`
	// Fingerprint of the data that the turn was claimed with; the live copy has it in header
	// Oneturn-Fingerprint.
	Fingerprint string          `json:"fingerprint,omitempty"`
	Event       json.RawMessage `json:"event"` // null with a code
	// Code is state_corrupt for the response of a turn, its end, that cannot be read; else empty.
	Code events.Code `json:"code,omitempty"`
}

// Errors of the request API, in header Nats-Service-Error-Code.
const (
	apiBadRequest  = "400"
	apiNotFound    = "404"
	apiBusy        = "429"
	apiUnavailable = "503"
)

var (
	errBadRequest = errors.New("bad request")
	errBusy       = errors.New("busy: as many requests of this tenant, or of all, are being answered as this worker takes: try again shortly")
)

// headerRetryAfter is the header of a 429: the seconds to wait before the next try.
const headerRetryAfter = "Retry-After"

// retryAfter returns the seconds to wait after an error that is a 429; ok is false for others.
func retryAfter(err error) (seconds int, ok bool) {
	if busy, ok := errors.AsType[*searches.BusyError](err); ok {
		return busy.Seconds(), true
	}
	return 1, errors.Is(err, errBusy)
}

// api answers requests for the journal, so that outsiders need rights on subjects of their
// tenant only, and no reader stalls the stream.
type api struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	store  *idempotency.KV // for reads by name
	timers *timers
	// searches is for reads by filters: it bounds what a tenant has the server search.
	searches *journalSearches
	space    subjects.Space
	logger   *slog.Logger
	most     int // bytes of records in an answer that the server takes
	// mayReply is [handlers.Handlers.MayReply].
	mayReply func(reply, from string) bool

	service micro.Service
	ctx     context.Context //nolint:containedctx // the life of the service, which requests end with
	cancel  context.CancelFunc

	mu      sync.Mutex
	stopped bool
	answers sync.WaitGroup // grows only until stopped
}

// WorkerState is what a worker reports of itself in the statistics of its request API.
type WorkerState struct {
	NotReady string `json:"not_ready,omitempty"` // why it is not ready, as in /readyz; "" if it is
}

func stateOf(err error) WorkerState {
	if err == nil {
		return WorkerState{}
	}
	return WorkerState{NotReady: err.Error()}
}

// waiting is what a reader returns whose answer takes time though nothing is read for it.
type waiting func(ctx context.Context) (any, error)

// reader reads what a request of a tenant asks for, in a form that encoding/json writes, or a *piece, or
// is [waiting] for it.
type reader func(ctx context.Context, app string, body []byte) (any, error)

func serveAPI(nc *nats.Conn, space subjects.Space, search *journalSearches, logger *slog.Logger, mayReply func(reply, from string) bool, ready func() error) (*api, error) {
	a := &api{nc: nc, space: space, searches: search, logger: logger, most: int(nc.MaxPayload()) - 8<<10, mayReply: mayReply}
	if search != nil {
		a.store = search.store
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	var err error
	if a.js, err = jetstream.New(nc); err != nil {
		a.cancel()
		return nil, fmt.Errorf("oneturn worker: request API: %w", err)
	}
	a.timers = newTimers(a.js, space)
	a.service, err = micro.AddService(nc, micro.Config{
		Name: space.APIName(), Version: apiVersion, Description: "reads the turn journal of oneturn",
		StatsHandler: func(*micro.Endpoint) any { return stateOf(ready()) },
	})
	if err != nil {
		a.cancel()
		return nil, fmt.Errorf("oneturn worker: request API: %w", err)
	}
	for verb, read := range map[string]reader{VerbTurn: a.turn, VerbHistory: a.history, VerbWaits: a.waits, VerbAnswer: a.answer, VerbBlob: a.blob} {
		if err := a.service.AddEndpoint(verb, a.serve(newGate(), read), micro.WithEndpointSubject(space.APIForAll(verb))); err != nil {
			return nil, errors.Join(fmt.Errorf("oneturn worker: request API: %w", err), a.stop())
		}
	}
	return a, nil
}

// stop ends the service and the answers that are being made.
func (a *api) stop() error {
	err := a.service.Stop()
	a.cancel()
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	a.answers.Wait()
	if err != nil {
		return fmt.Errorf("stop the request API: %w", err)
	}
	return nil
}

// begin makes an answer in a goroutine of its own, and reports false once the service has been
// stopped: requests that have arrived by then are still handed out.
func (a *api) begin(answer func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.answers.Go(answer)
	}
	return !a.stopped
}

// serve answers the requests of a verb, each in a goroutine of its own as far as the gate
// lets it in.
func (a *api) serve(g *gate, read reader) micro.HandlerFunc {
	return func(r micro.Request) {
		subject, reply, body := r.Subject(), r.Reply(), r.Data()
		if !a.mayReply(reply, subject) {
			return
		}
		app, ok := a.space.APITenant(subject)
		switch {
		case !ok:
			a.reply(subject, reply, nil, fmt.Errorf("%w: the subject names no tenant", errBadRequest))
			return
		case len(body) > maxRequest:
			a.reply(subject, reply, nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", errBadRequest, len(body), maxRequest))
			return
		}
		p, ok := g.enter(app)
		if !ok {
			a.reply(subject, reply, nil, errBusy)
			return
		}
		begun := a.begin(func() {
			defer p.leave()
			ctx, cancel := context.WithTimeout(a.ctx, apiTimeout)
			defer cancel()
			if !p.wait(ctx) {
				a.reply(subject, reply, nil, errBusy)
				return
			}
			read, err := read(ctx, app, body)
			if wait, ok := read.(waiting); ok && err == nil {
				p.rest()
				read, err = wait(ctx)
			}
			a.reply(subject, reply, read, err)
		})
		if !begun {
			p.leave()
		}
	}
}

// reply sends what was read, or what kept it from being read. The service's own way of answering
// is not made for goroutines.
func (a *api) reply(subject, reply string, read any, err error) {
	m := &nats.Msg{Subject: reply}
	fail := func(code, text string) {
		m.Header = nats.Header{micro.ErrorHeader: {text}, micro.ErrorCodeHeader: {code}}
	}
	seconds, busy := retryAfter(err)
	switch {
	case errors.Is(err, errBadRequest):
		fail(apiBadRequest, err.Error())
	case errors.Is(err, errNotFound):
		fail(apiNotFound, err.Error())
	case busy:
		fail(apiBusy, err.Error())
		m.Header.Set(headerRetryAfter, strconv.Itoa(seconds))
	case errors.Is(err, context.Canceled): // the worker drains: another one answers the next request
		fail(apiUnavailable, "the worker is stopping: try again")
	case err != nil:
		a.logger.Warn("request for the journal failed", "subject", subject, "err", err)
		fail(apiUnavailable, "the journal cannot be read now: try again")
	default:
		if p, ok := read.(*piece); ok {
			m = p.message(reply)
		} else {
			m.Data = encode(read)
		}
	}
	if err := a.nc.PublishMsg(m); err != nil {
		a.logger.Debug("a request could not be answered", "subject", subject, "err", err)
	}
}
