// Package apiserver serves the request API of a worker: the NATS micro service whose wire types are in
// package api. Clients read the journal through it and so need rights on subjects of their tenant only.
//
// server.go receives requests and sends replies; request_limits.go bounds how many are handled at the same
// time. The verbs have files: events.go (turn, history), questions.go, answer.go, blob.go and context.go. All but
// the blobs and the context variables are read by package query.
package apiserver

import (
	"bytes"
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

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// apiVersion is the version of the request API's shapes.
const apiVersion = "1.0.0"

// timeout bounds the time of one request.
const timeout = 5 * time.Second

// maxRequest bounds a request in bytes: its ids have at most 1024 each, and an escape of JSON
// takes six.
const maxRequest = 32 << 10

// Errors of the request API, in header Nats-Service-Error-Code.
const (
	codeBadRequest  = "400"
	codeNotFound    = "404"
	codeBusy        = "429"
	codeUnavailable = "503"
)

var (
	errBadRequest = errors.New("bad request")
	errBusy       = errors.New("busy: the limit of concurrent requests of this tenant, or of all, is reached on this worker: try again shortly")
)

// headerRetryAfter is the header of a 429: the seconds to wait before the next try.
const headerRetryAfter = "Retry-After"

// retryAfter returns the seconds to wait after an error that is a 429; ok is false for others.
func retryAfter(err error) (seconds int, ok bool) {
	if busy, ok := errors.AsType[*searchbudget.BusyError](err); ok {
		return busy.Seconds(), true
	}
	return 1, errors.Is(err, errBusy)
}

// Server answers requests. No reader stalls the journal's stream.
type Server struct {
	Options

	nc   *nats.Conn
	js   jetstream.JetStream
	most int // bytes in a reply that the server accepts

	service micro.Service
	ctx     context.Context //nolint:containedctx // the life of the service, which requests end with
	cancel  context.CancelFunc

	mu      sync.Mutex
	stopped bool
	answers sync.WaitGroup // grows only until stopped
}

// Options are what a server answers from.
type Options struct {
	Space     subjects.Space
	Reader    *query.Reader        // of the journal
	Variables *variables.Variables // of chats
	Bindings  func() *bindings.Set // the current manifests: start values of variables
	Logger    *slog.Logger
	// MayReply is [handlers.Handlers.MayReply]: it decides which reply subjects are allowed.
	MayReply func(reply, from string) bool
	Ready    func() error // why the worker does not consume
}

func workerState(err error) api.WorkerState {
	if err == nil {
		return api.WorkerState{}
	}
	return api.WorkerState{NotReady: err.Error()}
}

// asyncAnswer is returned by an endpoint whose reply takes time although nothing is read for it.
type asyncAnswer func(ctx context.Context) (any, error)

// endpoint returns the reply to a request of a tenant: a value that encoding/json writes, a [*store.Piece], or
// an [asyncAnswer].
type endpoint func(ctx context.Context, app string, body []byte) (any, error)

// Serve answers requests until [Server.Stop].
func Serve(nc *nats.Conn, o Options) (*Server, error) {
	s := &Server{Options: o, nc: nc, most: int(nc.MaxPayload()) - 8<<10}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	if s.js, err = jetstream.New(nc); err != nil {
		s.cancel()
		return nil, fmt.Errorf("oneturn worker: request API: %w", err)
	}
	s.service, err = micro.AddService(nc, micro.Config{
		Name: o.Space.APIName(), Version: apiVersion, Description: "reads the turn journal of oneturn",
		StatsHandler: func(*micro.Endpoint) any { return workerState(o.Ready()) },
	})
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("oneturn worker: request API: %w", err)
	}
	questions := newGate() // one for both names of the verb
	for _, e := range []struct {
		verb     string
		gate     *gate
		endpoint endpoint
	}{
		{api.VerbTurn, newGate(), s.turn},
		{api.VerbHistory, newGate(), s.history},
		{api.VerbQuestions, questions, s.questions},
		{api.VerbWaits, questions, s.waits},
		{api.VerbAnswer, newGate(), s.answer},
		{api.VerbBlob, newGate(), s.blob},
		{api.VerbContext, newGate(), s.context},
	} {
		if err := s.service.AddEndpoint(e.verb, s.serve(e.gate, e.endpoint), micro.WithEndpointSubject(o.Space.APIForAll(e.verb))); err != nil {
			return nil, errors.Join(fmt.Errorf("oneturn worker: request API: %w", err), s.Stop())
		}
	}
	return s, nil
}

// Stop ends the service and the answers in progress.
func (s *Server) Stop() error {
	err := s.service.Stop()
	s.cancel()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.answers.Wait()
	if err != nil {
		return fmt.Errorf("stop the request API: %w", err)
	}
	return nil
}

// begin runs an answer in a separate goroutine. It reports false once the service has been stopped:
// requests that arrived before are still delivered then.
func (s *Server) begin(answer func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.answers.Go(answer)
	}
	return !s.stopped
}

// serve answers the requests of a verb, each in a separate goroutine, as far as the gate admits them.
func (s *Server) serve(g *gate, answer endpoint) micro.HandlerFunc {
	return func(r micro.Request) {
		subject, reply, body := r.Subject(), r.Reply(), r.Data()
		if !s.MayReply(reply, subject) {
			return
		}
		app, ok := s.Space.APITenant(subject)
		switch {
		case !ok:
			s.reply(subject, reply, nil, fmt.Errorf("%w: the subject has no tenant", errBadRequest))
			return
		case len(body) > maxRequest:
			s.reply(subject, reply, nil, fmt.Errorf("%w: its body has %d bytes, the limit is %d", errBadRequest, len(body), maxRequest))
			return
		}
		p, ok := g.enter(app)
		if !ok {
			s.reply(subject, reply, nil, errBusy)
			return
		}
		begun := s.begin(func() {
			defer p.leave()
			ctx, cancel := context.WithTimeout(s.ctx, timeout)
			defer cancel()
			if !p.wait(ctx) {
				s.reply(subject, reply, nil, errBusy)
				return
			}
			answered, err := answer(ctx, app, body)
			if wait, ok := answered.(asyncAnswer); ok && err == nil {
				p.release()
				answered, err = wait(ctx)
			}
			s.reply(subject, reply, answered, err)
		})
		if !begun {
			p.leave()
		}
	}
}

// encode writes an answer as JSON. The usual escapes for HTML would make an event up to six
// times as long, and the answer larger than the server takes.
func encode(answer any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(answer) //nolint:errchkjson // cannot fail: the events are valid JSON
	return b.Bytes()
}

// reply sends an answer or an error. The service's own way of answering is not made for goroutines.
func (s *Server) reply(subject, reply string, answer any, err error) {
	m := &nats.Msg{Subject: reply}
	fail := func(code, text string) {
		m.Header = nats.Header{micro.ErrorHeader: {text}, micro.ErrorCodeHeader: {code}}
	}
	seconds, busy := retryAfter(err)
	switch {
	case errors.Is(err, errBadRequest):
		fail(codeBadRequest, err.Error())
	case errors.Is(err, errNotFound):
		fail(codeNotFound, err.Error())
	case errors.Is(err, errContextCorrupt):
		fail(codeUnavailable, err.Error())
	case busy:
		fail(codeBusy, err.Error())
		m.Header.Set(headerRetryAfter, strconv.Itoa(seconds))
	case errors.Is(err, context.Canceled): // the worker drains: another one answers the next request
		fail(codeUnavailable, "the worker is stopping: try again")
	case err != nil:
		s.Logger.Warn("request for the journal failed", "subject", subject, "err", err)
		fail(codeUnavailable, "the journal cannot be read now: try again")
	default:
		if p, ok := answer.(*store.Piece); ok {
			m = blobReply(reply, p)
		} else {
			m.Data = encode(answer)
		}
	}
	if err := s.nc.PublishMsg(m); err != nil {
		s.Logger.Debug("a request could not be answered", "subject", subject, "err", err)
	}
}
