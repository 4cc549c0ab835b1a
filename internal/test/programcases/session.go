package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// Ids of the turn of a case.
const (
	app  = "acme"
	chat = "chat-1"
	turn = "turn-1"
	user = "user-1"
)

var turnID = oneturn.TurnID{App: app, Chat: chat, Turn: turn} //nolint:gochecknoglobals // a constant

// session is a case with all that runs for it: a server, counterparts of tools, a worker.
type session struct {
	c       *Case
	folder  string
	root    string // tool_call_id of the turn
	server  *embedded.Server
	nc      *nats.Conn
	js      jetstream.JetStream
	space   subjects.Space
	client  *oneturn.Client
	journal *Journal
	models  *Models
	to      counterparts
	worker  *Process
	kills   int // of workers
	end     []func()

	mu   sync.Mutex
	live []any
	dead []any
}

func (s *session) workflows() string  { return filepath.Join(s.folder, folderOfFlows) }
func (s *session) ledgerPath() string { return filepath.Join(s.folder, fileLedger) }

// open starts everything but the worker.
func open(ctx context.Context, c *Case, folder string) (*session, error) {
	s := &session{c: c, folder: folder, root: events.CallID(events.TurnID(turnID), subjects.TurnToken("", turn))}
	for _, begin := range []func(context.Context) error{s.writeFolder, s.startServer, s.connect} {
		if err := begin(ctx); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// writeFolder starts the counterparts of the tools and writes the workflow, which names them.
func (s *session) writeFolder(context.Context) error {
	if err := os.WriteFile(filepath.Join(s.folder, fileCase), s.c.source, 0o600); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	if err := s.openCounterparts(); err != nil {
		return err
	}
	return s.c.writeWorkflow(s.workflows(), s.to)
}

// startServer starts the server, without streams.
func (s *session) startServer(ctx context.Context) (err error) {
	if s.server, err = embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Memory: true}); err != nil {
		return err
	}
	s.end = append(s.end, func() { _ = s.server.Stop() }) // its store is gone with it
	if s.nc, err = nats.Connect(s.server.URL()); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	s.end = append(s.end, s.nc.Close)
	return nil
}

// connect makes the streams and begins to follow what is stored and published.
func (s *session) connect(ctx context.Context) (err error) {
	if s.js, err = jetstream.New(s.nc); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if s.space, err = subjects.New(subjects.DefaultPrefix); err != nil {
		return err
	}
	plan, err := provision.New(provision.Options{AckWait: time.Second})
	if err != nil {
		return err
	}
	if _, err = provision.Apply(ctx, s.js, plan); err != nil {
		return err
	}
	if s.client, err = oneturn.NewClient(s.nc, oneturn.ClientOptions{WithoutMsgID: true}); err != nil {
		return err
	}
	if s.journal, err = follow(ctx, s.js, s.space); err != nil {
		return err
	}
	s.end = append(s.end, s.journal.stop)
	return s.listen()
}

// openCounterparts starts the models, and the MCP server if the case has a tool on one.
func (s *session) openCounterparts() (err error) {
	if s.models, err = startModels(s.c); err != nil {
		return err
	}
	s.end = append(s.end, func() { _ = s.models.Close() }) // no call waits
	s.to.Models = s.models.url
	for _, t := range s.c.Tools {
		if !t.onMCP() {
			continue
		}
		ledger, err := openLedger(s.ledgerPath())
		if err != nil {
			return err
		}
		server, url, err := startMCP(s.c, ledger)
		if err != nil {
			return errors.Join(err, ledger.Close())
		}
		s.end = append(s.end, func() { _ = errors.Join(server.Close(), ledger.Close()) }) // as above
		s.to.MCP = url
		break
	}
	return nil
}

// listen keeps what is published and not in the journal: live events and dead letters.
func (s *session) listen() error {
	keep := func(list *[]any) nats.MsgHandler {
		return func(m *nats.Msg) {
			data := eventData(m.Data)
			if data == nil {
				data = map[string]any{"subject": m.Subject}
			}
			s.mu.Lock()
			*list = append(*list, data)
			s.mu.Unlock()
		}
	}
	_, errLive := s.nc.Subscribe(s.space.Prefix()+".live.>", keep(&s.live))
	_, errDead := s.nc.Subscribe(s.space.DeadSubjects(), keep(&s.dead))
	return errors.Join(errLive, errDead)
}

// Close ends everything that was started.
func (s *session) Close() {
	if s.worker != nil {
		s.worker.stop()
	}
	for i := range s.end {
		s.end[len(s.end)-1-i]()
	}
}

// data returns the data of the turn.
func (c *Case) data() json.RawMessage {
	switch {
	case c.Ask != "":
		return encoded(map[string]any{"prompt": c.Ask})
	case c.PlanText != "":
		return json.RawMessage(c.PlanText)
	case c.Orchestrate != nil:
		return c.Orchestrate
	}
	return c.Plan
}

// publish publishes the turn with this data.
func (s *session) publish(ctx context.Context, data json.RawMessage) error {
	body := map[string]any{
		"kind": cmp.Or(s.c.Entry, events.KindStructuredOutputReady), "agent": callerName, "turn_idempotency_key": turn,
		"context": map[string]any{"app_id": app, "chat_id": chat, "workflow_name": workflowName, "user_id": user},
	}
	if s.c.Entry == events.KindPlanReady {
		body["plan"] = data
	} else {
		body["structured_data"], body["auto_tool_mode"] = data, true
	}
	kind, _ := body["kind"].(string)
	message := encoded(map[string]any{
		"type": events.TypeOf(kind), "data": body, "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
	})
	if _, err := s.js.Publish(ctx, s.space.In(subjects.DefaultPool, kind, app, workflowName, chat), message); err != nil {
		return fmt.Errorf("publish the turn: %w", err)
	}
	return nil
}

// key is the token of the turn in the keys of the journal.
func (s *session) key() string { return subjects.TurnToken("", turn) }
