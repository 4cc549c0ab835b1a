package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/catalog"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// Options configure a [Gateway].
type Options struct {
	NATS *nats.Conn // required
	// Reads is a separate connection for histories, so that nothing else waits for them. Defaults to NATS: then the budgets of tenants for
	// searches are charged for pauses of the server too, which look the same as waits for histories.
	Reads  *nats.Conn
	Auth   auth.Authenticator // required: whose a request is
	Prefix string             // of all names on NATS; "oneturn" if empty
	Pool   string             // of the workers that messages of users go to; "default" if empty

	// Origins are the pages that may use the gateway from a browser; without any, only pages of the gateway's address.
	Origins []string
	Limits  Limits

	// Settle is how long a chat must be quiet until a run of AG-UI ends. Defaults to 2 s.
	Settle time.Duration
	// FirstTurn is how long a run of AG-UI waits for the first turn after the message of a user. Defaults to 5 min.
	FirstTurn time.Duration
	// KeepAlive is the time between comments in a stream without events. Defaults to 15 s.
	KeepAlive time.Duration

	// Version is the version of the program, for clients that ask. Defaults to "dev".
	Version  string
	Logger   *slog.Logger          // slog.Default() if nil
	Registry prometheus.Registerer // nil for no metrics
	// TracerProvider makes an OpenTelemetry span for every request and every frame that is a command, without ids. Defaults to
	// none; the traceparent of a client passes through all the same.
	TracerProvider trace.TracerProvider
}

// Limits bound what clients may use. Zero is the default, a negative number means unlimited.
type Limits struct {
	Body             int64 // bytes of a body, and of a frame of a WebSocket. Defaults to 1 MiB; there is always a limit
	RunBody          int64 // bytes of the input of a run of AG-UI. Defaults to 8 MiB, more than a snapshot; there is always a limit
	Streams          int   // open WebSockets and event streams. Defaults to 10,000
	StreamsPerTenant int   // Defaults to nine tenths of Streams
	StreamsPerUser   int   // Defaults to 1,000
	TenantRate       int   // requests and frames all users of a tenant may send in a second. Defaults to 2,000
	Rate             int   // requests and frames a user may send in a second. Defaults to 20
	RunRate          int   // runs of AG-UI a user may start in a second. Defaults to 5
	Burst            int   // how many of either a user may send at the same time. Defaults to 40
}

func (l Limits) withDefaults() Limits {
	const body, runBody, streams, streamsPerUser, tenantRate, rate, runRate, burst = 1 << 20, 8 << 20, 10_000, 1_000, 2_000, 20, 5, 40
	if l.Body <= 0 {
		l.Body = body
	}
	if l.RunBody <= 0 {
		l.RunBody = max(runBody, l.Body)
	}
	return Limits{
		Body: l.Body, RunBody: l.RunBody, Streams: cmp.Or(l.Streams, streams), StreamsPerTenant: l.StreamsPerTenant, StreamsPerUser: cmp.Or(l.StreamsPerUser, streamsPerUser),
		TenantRate: cmp.Or(l.TenantRate, tenantRate), Rate: cmp.Or(l.Rate, rate), RunRate: cmp.Or(l.RunRate, runRate), Burst: cmp.Or(l.Burst, burst),
	}
}

func (o Options) withDefaults() Options {
	o.Prefix, o.Pool, o.Version = cmp.Or(o.Prefix, subjects.DefaultPrefix), cmp.Or(o.Pool, subjects.DefaultPool), cmp.Or(o.Version, "dev")
	o.Settle, o.FirstTurn, o.KeepAlive = cmp.Or(o.Settle, 2*time.Second), cmp.Or(o.FirstTurn, 5*time.Minute), cmp.Or(o.KeepAlive, 15*time.Second)
	o.Limits = o.Limits.withDefaults()
	o.Reads = cmp.Or(o.Reads, o.NATS)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	return o
}

// Gateway is an [http.Handler] with the endpoints for frontends. It holds no state of chats: any replica answers any request.
type Gateway struct {
	o       Options
	js      jetstream.JetStream
	space   subjects.Space
	handler http.Handler
	table   []route
	metrics *metrics
	tracer  trace.Tracer
	origins *auth.Origins
	rates   *auth.Rates
	places  *auth.Places
	lines   throttle.Lines
	refused throttle.Lines // of clients that are not known, apart so that they take no place of tenants

	workflows   *catalog.Workflows
	name        string // which other gateways do not have
	began       time.Time
	runs        runs                // of AG-UI, in this gateway
	memory      *memory             // of their snapshots
	bodies      *bodies             // that are read and decoded
	released    *releasedWaits      // messages that no run waits for
	reported    *recent.Set[uint64] // damaged records
	stops       *nats.Subscription  // requests of other gateways to stop one
	rights      *rights             // that the server denies
	stopRights  func()              // ends the watch of them
	stopListing func()              // ends the reads of workflows

	current   atomic.Pointer[journal]
	reopening sync.Mutex
	closing   sync.Once

	mu       sync.Mutex
	draining context.Context //nolint:containedctx // ends with Drain
	drain    context.CancelFunc
	ending   chan struct{} // closed by Close: nothing is waited for any more
	stopped  bool
	streams  sync.WaitGroup // open sockets and streams; grows only until stopped
}

// New returns a gateway on a connection. The streams and buckets must exist. Close ends it.
func New(ctx context.Context, o Options) (*Gateway, error) {
	switch {
	case o.NATS == nil:
		return nil, errors.New("gateway: no NATS connection: set Options.NATS")
	case o.Auth == nil:
		return nil, errors.New("gateway: no authenticator: set Options.Auth, for example to a *auth.JWT")
	}
	g := &Gateway{
		o: o.withDefaults(), name: rand.Text(), began: time.Now(), ending: make(chan struct{}), memory: newMemory(snapshotMemory), bodies: newBodies(),
	}
	g.draining, g.drain = context.WithCancel(context.WithoutCancel(ctx))
	g.reported = recent.New[uint64](reportedRecords, time.Hour)
	g.released = newReleasedWaits(stoppedWaits, g.o.FirstTurn)
	g.table, g.tracer = g.routes(), tracerOf(o.TracerProvider)
	if err := subjects.CheckPool(g.o.Pool); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	var err error
	if g.space, err = subjects.New(g.o.Prefix); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if g.js, err = jetstream.New(o.NATS); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if err := g.guard(); err != nil {
		return nil, err
	}
	g.rights, g.stopRights = watchRights(o.NATS, g.o.Logger, g.space.LiveEvents(), g.space.GatewayStops())
	j, err := g.openJournal(ctx)
	if err != nil {
		g.stopRights()
		return nil, err
	}
	g.current.Store(j)
	if g.stops, err = g.serveStops(); err != nil {
		j.feeds.Close()
		g.stopRights()
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.listWorkflows()
	return g, nil
}

// listWorkflows keeps the list of workflows up to date until stopListing is called.
func (g *Gateway) listWorkflows() {
	g.workflows = catalog.NewWorkflows(g.js, g.space, g.o.Logger)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.workflows.Run(ctx)
	}()
	g.stopListing = func() {
		cancel()
		<-done
	}
}

// guard makes what admits requests: origins, rates, places and the metrics that count them.
func (g *Gateway) guard() error {
	var err error
	if g.origins, err = auth.NewOrigins(g.o.Origins); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	l := g.o.Limits
	g.rates = auth.NewRates(auth.RateConfig{
		Requests: float64(max(l.Rate, 0)), Runs: float64(max(l.RunRate, 0)), Burst: max(l.Burst, 0), Tenant: float64(max(l.TenantRate, 0)),
	})
	g.places = auth.NewPlaces(auth.PlaceLimits{Total: max(l.Streams, 0), PerTenant: l.StreamsPerTenant, PerUser: max(l.StreamsPerUser, 0)})
	if g.metrics, err = newMetrics(g.o.Registry); err != nil {
		return fmt.Errorf("gateway: metrics: %w", err)
	}
	g.handler = g.origins.CORS(http.HandlerFunc(g.answer))
	return nil
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		leaveBody(w, r)
	}
	if len(r.TransferEncoding) > 0 {
		// A proxy may go by a Content-Length that the server had to ignore: what it takes for the rest of this body must not
		// become the begin of another client's request.
		w.Header().Set("Connection", "close")
	}
	g.reportOrigin(r)
	g.handler.ServeHTTP(w, r)
	limitWrite(w) // of what the server has not sent yet
}

// errDraining is why a gateway that stops is not ready.
var errDraining = errors.New("the gateway is stopping")

// Ready reports why the gateway cannot serve now, nil if it can.
func (g *Gateway) Ready() error {
	select {
	case <-g.draining.Done():
		return errDraining
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), reopenTime)
	defer cancel()
	if err := g.journal(ctx).feeds.Ready(); err != nil {
		return err
	}
	if err := g.rights.err(); err != nil {
		return err
	}
	return auth.Ready(g.o.Auth)
}

// Drain ends the gateway gently: it takes no new streams, closes the open ones, and waits for them until ctx ends. A socket is
// closed when what its client has sent was answered. Plain requests are still answered.
func (g *Gateway) Drain(ctx context.Context) error {
	g.mu.Lock()
	if !g.stopped {
		g.stopped = true
		g.drain()
	}
	g.mu.Unlock()
	ended := make(chan struct{})
	go func() { // ends with the last stream: Close ends those that do not end by themselves
		defer close(ended)
		g.streams.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("gateway: drain: %w", context.Cause(ctx))
	}
}

// Close ends all streams and the subscriptions of the gateway. The connection stays open.
func (g *Gateway) Close() { g.closing.Do(g.close) }

func (g *Gateway) close() {
	close(g.ending)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = g.Drain(ctx)          // the streams are waited for below
	g.reopening.Lock()        // for ever: nothing opens the journal again
	_ = g.stops.Unsubscribe() // fails only on a closed connection
	g.stopListing()
	g.stopRights()
	g.current.Load().feeds.Close()
	g.streams.Wait()
}

// enterStream admits a socket or stream of a user. Leave ends it.
func (g *Gateway) enterStream(endpoint string, t auth.Target) (leave func(), err error) {
	release, err := g.places.Take(t.App, t.User)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		release()
		return nil, draining()
	}
	g.streams.Add(1)
	g.metrics.open.WithLabelValues(endpoint).Inc()
	return func() {
		g.metrics.open.WithLabelValues(endpoint).Dec()
		release()
		g.streams.Done()
	}, nil
}
