package gateway

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/gateway/auth"
)

// endpointLabel is the label of metrics, and the key in logs, that has the name of an endpoint.
const endpointLabel = "door"

// metrics are counted by endpoint and code, never by chat or user. The comments name the labels.
type metrics struct {
	requests *prometheus.CounterVec   // endpoint, code
	seconds  *prometheus.HistogramVec // endpoint
	open     *prometheus.GaugeVec     // endpoint
	closes   *prometheus.CounterVec   // code, reason
	frames   *prometheus.CounterVec   // endpoint, direction
	panics   prometheus.Counter
	damaged  prometheus.Counter
	tokens   *prometheus.CounterVec // reason
	origins  prometheus.Counter
	mirror   prometheus.Counter // pages of histories
	journal  prometheus.Counter

	socketFrames prometheus.Counter // of frames: sent to WebSockets
	streamEvents prometheus.Counter // of frames: sent to streams of events
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	const ns, sub = "oneturn", "gateway"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help}, labels)
	}
	m := &metrics{
		requests: counter("requests_total", "Requests that were answered, by endpoint and HTTP status.", endpointLabel, "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Subsystem: sub, Name: "request_seconds", Help: "Time until the reply of a request was complete; of sockets and streams how long they were open.",
			Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600, 3600},
		}, []string{endpointLabel}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: ns, Subsystem: sub, Name: "streams_open", Help: "WebSockets and event streams that are open.",
		}, []string{endpointLabel}),
		closes: counter("socket_closes_total", "WebSockets that the gateway has closed, by close code and reason.", "code", "reason"),
		frames: counter("frames_total", "Frames of WebSockets and events of streams, by endpoint and direction.", endpointLabel, "direction"),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "damaged_records_total", Help: "Times that a stored event was left out of a reply, socket or stream since it cannot be read.",
		}),
		tokens:  counter("tokens_refused_total", "Requests whose token was refused, or that had none, by reason.", "reason"),
		origins: prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "origins_refused_total", Help: "Requests of pages whose origin is not allowed."}),
		panics:  prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "panics_total", Help: "Requests whose endpoint panicked."}),
	}
	m.socketFrames = m.frames.WithLabelValues("ws", "out")
	m.streamEvents = m.frames.WithLabelValues("events", "out")
	histories := counter("history_pages_total", "Pages of histories of chats that were read, by the stream that had them.", "source")
	m.mirror, m.journal = histories.WithLabelValues("mirror"), histories.WithLabelValues("journal")
	for _, reason := range auth.Reasons() {
		m.tokens.WithLabelValues(string(reason))
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.open, m.closes, m.frames, m.panics, m.damaged, m.tokens, m.origins, histories} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// history counts a page of a history.
func (m *metrics) history(mirror bool) {
	if mirror {
		m.mirror.Inc()
		return
	}
	m.journal.Inc()
}

func (m *metrics) request(endpoint string, code int, took time.Duration) {
	m.requests.WithLabelValues(endpoint, strconv.Itoa(code)).Inc()
	m.seconds.WithLabelValues(endpoint).Observe(took.Seconds())
}
