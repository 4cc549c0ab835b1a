package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oneturn/oneturn/internal/memory"
	"github.com/oneturn/oneturn/subjects"
)

// The role relay is the baseline of the gateway: what one writes with nats.go. A subscription for each connection, whose
// messages are written as they come. It checks nothing, resumes nothing, and loses what comes while it is not connected.

// relay is the role.
type relay struct {
	process

	nc     *nats.Conn
	js     jetstream.JetStream
	space  subjects.Space
	server *http.Server
	url    string
}

func startRelay(s spec, dial dialer) (_ *relay, err error) {
	memory.PaceConnections(os.LookupEnv, memory.ContainerLimit) // as the gateway
	r := &relay{process: process{spec: s}}
	if r.space, err = subjects.New(subjects.DefaultPrefix); err != nil {
		return nil, err
	}
	if r.nc, err = dial(); err != nil {
		return nil, fmt.Errorf("connect the relay: %w", err)
	}
	if r.js, err = jetstream.New(r.nc); err != nil {
		r.nc.Close()
		return nil, fmt.Errorf("connect the relay: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.nc.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ws/{workflow}/{app}/{chat}/{user}", r.socket)
	mux.HandleFunc("POST /agui/{workflow}/connect", r.stream)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: connectTime}
	r.url = "http://" + listener.Addr().String()
	go func() { _ = r.server.Serve(listener) }() // ends with close
	return r, nil
}

func (r *relay) do(_ context.Context, q request) (reply, error) { return r.process.do(q) }

func (r *relay) close() error {
	r.nc.Close()
	return r.server.Close() //nolint:wrapcheck // of the listener
}

// socket writes the events of a chat to a WebSocket.
func (r *relay) socket(w http.ResponseWriter, q *http.Request) {
	conn, err := websocket.Accept(w, q, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	ctx := conn.CloseRead(context.Background())
	write := func(data []byte) error {
		within, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		return conn.Write(within, websocket.MessageText, data)
	}
	r.serve(ctx, q.PathValue("app"), q.PathValue("chat"), write)
}

// stream writes them as server-sent events.
func (r *relay) stream(w http.ResponseWriter, q *http.Request) {
	var in struct {
		Thread string `json:"threadId"` //nolint:tagliatelle // a name of AG-UI
	}
	if err := json.NewDecoder(q.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	r.serve(q.Context(), q.Header.Get("X-App-Id"), in.Thread, func(data []byte) error {
		_, err := w.Write(append(append([]byte("data: "), data...), "\n\n"...))
		return errors.Join(err, control.Flush())
	})
}

// serve writes the events of a chat until ctx ends: the stored ones with a consumer if there may be some, else new ones with a
// plain subscription.
func (r *relay) serve(ctx context.Context, tenant, chat string, write func(data []byte) error) {
	subject := r.space.JournalSubject(subjects.ChatRecords(subjects.Token(tenant), chat))
	ready := func() error { return write([]byte(`{"type":"` + boundaryType + `"}`)) }
	subscribe, stored := r.subscribe, strings.HasPrefix(chat, historyChat)
	if stored {
		subscribe = r.consume
	}
	stop, err := subscribe(ctx, subject, write)
	if err != nil {
		return
	}
	defer stop()
	if stored || ready() == nil {
		<-ctx.Done()
	}
}

// subscribe writes new events.
func (r *relay) subscribe(_ context.Context, subject string, write func(data []byte) error) (stop func(), err error) {
	sub, err := r.nc.Subscribe(subject, func(m *nats.Msg) { _ = write(m.Data) }) // a client that is gone ends the connection
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	if err := r.nc.FlushTimeout(connectTime); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// consume writes the stored events.
func (r *relay) consume(ctx context.Context, subject string, write func(data []byte) error) (stop func(), err error) {
	consumer, err := r.js.OrderedConsumer(ctx, r.space.TurnsStream(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		_ = write(m.Data()) // as above
		if meta, err := m.Metadata(); err == nil && meta.NumPending == 0 {
			_ = write([]byte(`{"type":"` + boundaryType + `"}`))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	return consuming.Stop, nil
}
