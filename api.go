package oneturn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Verbs of the request API: subject <prefix>.api.<app>.<verb>.
const (
	VerbTurn    = "turn"    // one turn, see TurnRequest
	VerbHistory = "history" // the events of a chat, see HistoryRequest
)

// apiVersion is the version of the request API's shapes.
const apiVersion = "1.0.0"

// Bounds of one answer. Only a single record may be larger than pageBytes; the server takes
// the answer because it took the record.
const (
	pageRecords = 16
	pageBytes   = 512 << 10
	apiTimeout  = 5 * time.Second
)

// TurnRequest asks for the public records of one turn of the subject's tenant.
type TurnRequest struct {
	Chat string `json:"chat_id"`
	Run  string `json:"run_id,omitempty"`
	Turn string `json:"turn"`           // turn key
	From uint64 `json:"from,omitempty"` // journal sequence to start at, 0 = the beginning
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
	Event       json.RawMessage `json:"event"`
}

// Errors of the request API, in header Nats-Service-Error-Code.
const (
	apiBadRequest  = "400"
	apiUnavailable = "503"
)

// api answers requests for the journal, so that outsiders need rights on subjects of their
// tenant only, and no reader stalls the stream.
type api struct {
	store  *idempotency.KV
	space  subjects.Space
	logger *slog.Logger
	most   int // bytes of records in an answer that the server takes
}

func serveAPI(nc *nats.Conn, space subjects.Space, store *idempotency.KV, logger *slog.Logger) (micro.Service, error) {
	a := &api{store, space, logger, int(nc.MaxPayload()) - 8<<10}
	s, err := micro.AddService(nc, micro.Config{
		Name: space.APIName(), Version: apiVersion, Description: "reads the turn journal of oneturn",
	})
	if err != nil {
		return nil, fmt.Errorf("oneturn worker: request API: %w", err)
	}
	for verb, read := range map[string]func(context.Context, string, []byte) (*Page, error){VerbTurn: a.turn, VerbHistory: a.history} {
		if err := s.AddEndpoint(verb, a.serve(read), micro.WithEndpointSubject(space.APIForAll(verb))); err != nil {
			return nil, errors.Join(fmt.Errorf("oneturn worker: request API: %w", err), s.Stop())
		}
	}
	return s, nil
}

var errBadRequest = errors.New("bad request")

func (a *api) serve(read func(ctx context.Context, app string, body []byte) (*Page, error)) micro.HandlerFunc {
	return func(r micro.Request) {
		if !a.space.MayReply(r.Reply()) {
			a.logger.Warn("a request that wants its answer on a subject of ours or of the server", "subject", r.Subject(), "reply", r.Reply())
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
		defer cancel()
		app, ok := a.space.APITenant(r.Subject())
		page, err := (*Page)(nil), fmt.Errorf("%w: the subject names no tenant", errBadRequest)
		if ok {
			page, err = read(ctx, app, r.Data())
		}
		switch {
		case errors.Is(err, errBadRequest):
			err = r.Error(apiBadRequest, err.Error(), nil)
		case err != nil:
			a.logger.Warn("request for the journal failed", "subject", r.Subject(), "err", err)
			err = r.Error(apiUnavailable, "the journal cannot be read now: try again", nil)
		default:
			err = r.Respond(page.encode())
		}
		if err != nil {
			a.logger.Debug("a request could not be answered", "subject", r.Subject(), "err", err)
		}
	}
}

func (a *api) turn(ctx context.Context, app string, body []byte) (*Page, error) {
	var q TurnRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" || q.Turn == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","turn":"…","run_id":"…"?}`, errBadRequest)
	}
	key := subjects.TurnKey("", q.Chat, q.Run, q.Turn)
	key.App = app
	return a.page(ctx, key.PublicRecords(), q.From)
}

func (a *api) history(ctx context.Context, app string, body []byte) (*Page, error) {
	var q HistoryRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","from":0}`, errBadRequest)
	}
	return a.page(ctx, subjects.ChatRecords(app, q.Chat), q.From)
}

func (a *api) page(ctx context.Context, filter string, from uint64) (*Page, error) {
	page := &Page{Records: []PageRecord{}}
	size := 0
	for len(page.Records) < pageRecords {
		r, err := a.store.Next(ctx, filter, from)
		if errors.Is(err, idempotency.ErrNotFound) {
			return page, nil
		}
		if err != nil {
			return nil, err
		}
		if size += len(r.Data); size > min(pageBytes, a.most) && len(page.Records) > 0 {
			break
		}
		from = r.Seq + 1
		if r.Err != nil || !json.Valid(r.Data) {
			continue // damaged: turnctl shows it
		}
		parsed, _ := subjects.ParseKey(r.Key)
		page.Records = append(page.Records, PageRecord{Sequence: r.Seq, Time: r.Time, Kind: parsed.Kind, Fingerprint: r.Meta.Fingerprint, Event: r.Data})
	}
	page.Next = from
	return page, nil
}

// encode writes the page as JSON. The usual escapes for HTML would make an event up to six
// times as long, and the answer larger than the server takes.
func (p *Page) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) //nolint:errchkjson // cannot fail: the events are valid JSON
	return b.Bytes()
}
