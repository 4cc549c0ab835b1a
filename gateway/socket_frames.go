package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/traceparent"
)

// What a socket receives: answers, messages of the user, and requests to replay or to cancel. A frame has its fields in data
// or next to its type. The socket decides whose they are: ids of tenant, chat and user in a frame are ignored.

// Kinds of frames that are not answers.
const (
	frameResume = "client.resume"
	frameCancel = "cancel"
	frameInput  = "user.input.submit"
)

// read handles frames until the socket ends.
func (s *socket) read(ctx context.Context) error {
	for {
		kind, data, held, err := s.receive(ctx)
		var stop *closeError
		switch {
		case errors.As(err, &stop):
			return err
		case err != nil && websocket.CloseStatus(err) == -1 && errors.Is(err, websocket.ErrMessageTooBig):
			return &closeError{websocket.StatusMessageTooBig, "too_large"}
		case err != nil:
			return errCloseByClient
		case kind != websocket.MessageText:
			held.free()
			return errCloseBinary
		}
		s.g.metrics.frames.WithLabelValues("ws", "in").Inc()
		if err := s.handle(ctx, data, held); err != nil {
			return err
		}
	}
}

// smallFrame is how much of a frame is read before it needs room.
const smallFrame = 16 << 10

// receive reads the next frame, and holds room for a large one. Its client has as long as for a body.
func (s *socket) receive(ctx context.Context) (kind websocket.MessageType, data []byte, h *held, err error) {
	h = &held{b: s.g.bodies, of: s.target}
	defer func() {
		if err != nil {
			h.free()
		}
	}()
	kind, reader, err := s.conn.Reader(context.Background()) // it ends with the connection: a context would cut that without a close frame
	if err != nil {
		return kind, nil, h, err //nolint:wrapcheck // the caller decides by it
	}
	if data, err = io.ReadAll(io.LimitReader(reader, smallFrame)); err != nil || len(data) < smallFrame {
		return kind, data, h, err //nolint:wrapcheck // likewise
	}
	if err := h.arrive(ctx, int(s.g.o.Limits.Body)); err != nil {
		return kind, nil, h, errCloseFailed
	}
	late := time.AfterFunc(bodyTime, func() { s.end(errCloseFailed) })
	defer late.Stop()
	rest, err := io.ReadAll(reader)
	data = append(data, rest...)
	h.arrived.shrink(len(data))
	return kind, data, h, err //nolint:wrapcheck // likewise
}

// limitedPause is how long a socket reads nothing after a frame too many.
const limitedPause = 250 * time.Millisecond

// handle handles a frame: in the background if it waits for workers. Its error ends the socket.
func (s *socket) handle(ctx context.Context, data []byte, h *held) error {
	f := &frame{held: h}
	defer func() {
		if !f.busy {
			h.free()
		}
	}()
	err := s.g.countRequest(s.id, s.target)
	limited := errors.Is(err, auth.ErrRateLimited)
	if unread := s.decode(ctx, f, data); err == nil || errors.As(unread, new(*closeError)) { // a reply names a frame too many, as far as it can be read
		err = unread
	}
	if limited && s.awaitTurn(ctx, f) {
		limited, err = false, nil
	}
	if err == nil {
		err = s.dispatch(ctx, f)
	}
	var stop *closeError
	var refused *refusedError
	switch {
	case err == nil || errors.As(err, &stop):
		return err
	case limited:
		s.held.refused(f, s.g.refusalOf(err).retry)
		_ = pause.For(ctx, limitedPause) // what comes next waits at the client; the end of ctx is noticed by the next read
	case errors.As(err, &refused) && refused.retry > 0: // it is not wrong
	case s.bad.count(time.Now()):
		return errCloseBad
	}
	return s.sendError(f, err)
}

// decode reads a frame. One for which there is no room ends the socket: it may be a message, which no later one may overtake.
func (s *socket) decode(ctx context.Context, f *frame, data []byte) error {
	err := f.held.decode(ctx, data, func() error { return f.read(data) })
	var refused *refusedError
	if errors.As(err, &refused) && refused.retry > 0 {
		return errCloseFailed
	}
	return err
}

// frameError is the data of a frame error. It names the frame that has no effect, as far as that can be read.
type frameError struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int    `json:"retry_after,omitempty"` // in seconds
	Type       string `json:"type,omitempty"`        // as it was sent
	MessageID  string `json:"message_id,omitempty"`
	Turn       string `json:"turn,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// sendError reports a frame that has no effect, nil for one that is not an object with a type.
func (s *socket) sendError(f *frame, err error) error {
	p := s.g.refusalOf(err)
	report := frameError{Code: p.code, Message: p.message, RetryAfter: p.seconds()}
	if f != nil {
		report.Type, report.MessageID, report.Turn = f.sent, f.id("message_id", "id"), f.id("turn", "turn_idempotency_key")
		report.ToolCallID = f.id(questionNames()...)
	}
	return s.writeOwn("error", report)
}

// id is an id of a frame, "" for what is too long for one.
func (f *frame) id(names ...string) string {
	if id := textAt(f.data, names...); len(id) <= events.MaxIDBytes {
		return id
	}
	return ""
}

// frame is an inbound frame.
type frame struct {
	kind  string // without "chat."
	sent  string // with it
	data  map[string]any
	trace string // the traceparent that it continues, "" for none
	held  *held  // by the frame
	busy  bool   // a command in the background frees that
}

func badFrame(code, message string) *refusedError {
	return refuse(http.StatusBadRequest, code, message)
}

// read decodes a frame.
func (f *frame) read(data []byte) error {
	tree, err := events.Decode(data)
	if err != nil {
		return refusalOfBody(err)
	}
	top, ok := tree.(map[string]any)
	if !ok {
		return badFrame(codeBadJSON, `a frame is one JSON object: send {"type": …}`)
	}
	kind, _ := top["type"].(string)
	if kind == "" {
		return badFrame(codeMissingField, "type is missing: send it as a text")
	}
	f.kind, f.sent, f.data = strings.TrimPrefix(kind, events.TypePrefix), events.Clip(kind), top
	if inner, ok := top["data"].(map[string]any); ok {
		f.data = inner
	}
	f.trace = cmp.Or(textAt(top, traceparent.Header), textAt(f.data, traceparent.Header))
	return nil
}

// dispatch starts what a frame asks for.
func (s *socket) dispatch(ctx context.Context, f *frame) error {
	switch {
	case f.kind == frameResume:
		after, err := f.cursor()
		if err != nil {
			return err
		}
		s.restart(after)
		return nil
	case f.kind == frameCancel:
		r, err := readCancel(f.data)
		if err != nil {
			return err
		}
		return s.background(ctx, f, "cancel", func(ctx context.Context) error { return s.cancel(ctx, r) })
	case isInput(f.kind) && !f.answersQuestion():
		m, err := s.messageOf(f)
		if err != nil {
			return err
		}
		if err := s.held.allow(m.Message); err != nil {
			return err
		}
		before, sent := s.sent, make(chan struct{})
		s.sent = sent
		return s.background(ctx, f, "message", func(ctx context.Context) error {
			defer close(sent)
			if before != nil {
				<-before
			}
			return s.publish(ctx, m)
		})
	case f.kind != events.KindDeferredResponse && events.AnswerKind(f.kind):
		r, err := s.answerOf(f)
		if err != nil {
			return err
		}
		return s.background(ctx, f, "answer", func(ctx context.Context) error { return s.answer(ctx, f, r) })
	}
	return badFrame("unknown_type", "frames of this type are not known: see docs/gateway.md for the types")
}

// background runs the command of a frame, which waits for NATS, when there is a place for it. Its error ends the socket.
func (s *socket) background(ctx context.Context, f *frame, name string, do func(context.Context) error) error {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f.busy = true
	s.answers.Go(func() {
		defer func() { <-s.places }()
		defer f.held.free()
		work, span := s.command(s.work, f, name)
		defer span.End()
		if err := do(work); err != nil {
			s.end(err)
		}
	})
	return nil
}

func isInput(kind string) bool { return kind == frameInput || kind == events.KindUserInputSubmit }

// questionNames are the names under which a frame names its question.
func questionNames() []string {
	return []string{"tool_call_id", "eventId", "event_id", "request_id", "corr", "ui_tool_id", "call_id"}
}

func (f *frame) answersQuestion() bool {
	return slices.ContainsFunc(questionNames(), func(name string) bool { return textAt(f.data, name) != "" })
}

// isMozaiks reports whether a frame has the names of MozaiksAI's frontends.
func (f *frame) isMozaiks() bool {
	return strings.HasPrefix(f.kind, "ui_tool_") || textAt(f.data, "eventId", "event_id") != ""
}

// cursor is the sequence after which a client wants events again; MozaiksAI's frontends begin at -1.
func (f *frame) cursor() (uint64, error) {
	for _, name := range []string{"after", "lastClientIndex"} {
		switch v := f.data[name].(type) {
		case nil:
			continue
		case json.Number:
			if n, err := v.Int64(); err == nil {
				return uint64(max(n, 0)), nil
			}
		}
		return 0, badFrame("bad_cursor", name+" is not a sequence: send the sequence of the last event, or 0")
	}
	return 0, nil
}

// answerOf reads the answer in a frame.
func (s *socket) answerOf(f *frame) (*events.ToolCallResponse, error) {
	data := maps.Clone(f.data)
	delete(data, "context")
	delete(data, "app_id")
	delete(data, "enterprise_id")
	delete(data, "user_id")
	data["chat_id"] = s.target.Chat
	r, err := (&events.Message{Kind: f.kind, Data: data}).Answer()
	if err != nil {
		return nil, refusalOfBody(err)
	}
	return r, nil
}

// answer delivers an answer and sends its verdict to this client alone.
func (s *socket) answer(ctx context.Context, f *frame, r *events.ToolCallResponse) error {
	result, err := s.g.deliver(ctx, s.id, s.target, r, verdictWait)
	if err != nil {
		p := s.g.refusalOf(err)
		s.g.logRefusal(ctx, "ws", s.target.App, p)
		result = &events.AnswerResult{Status: p.status, Code: events.AnswerCode(p.code), Message: p.message, ToolCallID: r.ToolCallID}
	}
	setOutcome(trace.SpanFromContext(ctx), result.Status, string(result.Code))
	if err := s.writeOwn("ack.tool_call_response", result); err != nil || !f.isMozaiks() {
		return err
	}
	status := "rejected"
	if result.OK() || result.Status == http.StatusAccepted {
		status = "accepted"
	}
	return s.writeOwn("ack.ui_tool_response", struct {
		EventID string `json:"eventId"` //nolint:tagliatelle // a name of MozaiksAI
		Status  string `json:"status"`
	}{r.ToolCallID, status})
}

// ack is what the sender of a message or of a cancel request gets.
type ack struct {
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	MessageID  string `json:"message_id,omitempty"`
	Turn       string `json:"turn,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// published is the outcome of what is stored for a worker.
func published(text string) ack {
	return ack{Status: api.StatusPublished, Code: string(api.CodePublished), Message: text}
}

// outcome sets the outcome: err, or without one the given outcome.
func (a *ack) outcome(ctx context.Context, g *Gateway, err error, without ack) {
	defer func() { setOutcome(trace.SpanFromContext(ctx), a.Status, a.Code) }()
	a.Status, a.Code, a.Message = without.Status, without.Code, without.Message
	if err != nil {
		p := g.refusalOf(err)
		a.Status, a.Code, a.Message = p.status, p.code, p.message
	}
}

// cancel publishes a cancel request.
func (s *socket) cancel(ctx context.Context, r cancelRequest) error {
	a := ack{Turn: r.turn, ToolCallID: r.toolCallID}
	done, err := s.g.requestCancel(ctx, s.id, s.target, r)
	a.outcome(ctx, s.g, err, done)
	return s.writeOwn("ack.cancel", a)
}

// badFrames counts the frames of a socket that had no effect.
type badFrames struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

// Bad frames that a socket may send within a time.
const (
	mostBad = 20
	badFor  = time.Minute
)

// count counts one, and reports whether it was one too many.
func (b *badFrames) count(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.since) > badFor {
		b.since, b.n = now, 0
	}
	b.n++
	return b.n >= mostBad
}
