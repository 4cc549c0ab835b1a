package metrics

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/engine"
)

// Metrics counts what handlers do. Labels come from loaded manifests and from fixed lists,
// never from messages.
type Metrics struct {
	Turns         *prometheus.CounterVec // workflow, tool, outcome: ended by this worker
	Duplicates    prometheus.Counter
	Conflicts     prometheus.Counter
	Redeliveries  prometheus.Counter
	Takeovers     prometheus.Counter
	LateResults   prometheus.Counter
	NotATurn      prometheus.Counter
	UnknownWrites prometheus.Counter
	StoreRetries  *prometheus.CounterVec // bucket
	Abandoned     prometheus.Counter
	Cached        *prometheus.CounterVec // workflow, tool
	Panics        prometheus.Counter
	Answers       *prometheus.CounterVec // result
	Expiries      *prometheus.CounterVec // result
	// RepliesRefused counts replies to requests and answers that were not sent, see Handlers.MayReply.
	RepliesRefused prometheus.Counter
	Dead           *prometheus.CounterVec // reason
	DeadDiscarded  *prometheus.CounterVec // reason
	Deferred       prometheus.Counter
	InFlight       prometheus.Gauge
	ToolSeconds    *prometheus.HistogramVec // workflow, tool
	WaitSeconds    *prometheus.HistogramVec // workflow, tool: of tools that may wait before they are entered
	TurnSeconds    prometheus.Histogram     // from stored in the inbound stream to response stored

	Asked   prometheus.Counter     // questions that a run has asked
	Open    prometheus.Gauge       // of these, those that wait in memory
	Closed  *prometheus.CounterVec // outcome: answered, expired, parked, left
	Parked  prometheus.Counter     // turns
	Resumed prometheus.Counter     // turns that were parked

	Programs
	Messages
	Corrections
}

// buckets span no-op tools and tools that take minutes, in seconds.
func buckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// New makes the metrics and registers them with r.
func New(r prometheus.Registerer) (*Metrics, error) {
	const ns = "oneturn"
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Name: name, Help: help})
	}
	m := &Metrics{
		Turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "turns_total", Help: "Turns whose response this worker stored.",
		}, []string{"workflow", "tool", "outcome"}),
		Duplicates:    counter("duplicates_total", "Messages whose turn another message had claimed, or that had ended."),
		Conflicts:     counter("conflicts_total", "Turn keys used again with other data."),
		Redeliveries:  counter("redeliveries_total", "Messages delivered more than once."),
		Takeovers:     counter("takeovers_total", "Turns continued after their worker lost them."),
		LateResults:   counter("late_results_total", "Results dropped because the turn had ended without them."),
		NotATurn:      counter("not_a_turn_total", "Events without auto_tool_mode."),
		UnknownWrites: counter("unknown_writes_total", "Journal writes whose outcome was unknown and that were sent again."),
		StoreRetries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "store_retries_total", Help: "Reads and writes of blobs and context variables without an outcome that were tried again.",
		}, []string{"bucket"}),
		Abandoned: counter("abandoned_tools_total", "Tools abandoned because they ignored the end of their context."),
		Cached: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "cached_results_total", Help: "Calls that got the result of an earlier one.",
		}, []string{"workflow", "tool"}),
		Panics:         counter("panics_total", "Panics in handlers."),
		RepliesRefused: counter("replies_refused_total", "Replies to requests and answers that were not sent: the subject that they name is not an inbox."),
		Answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "answers_total", Help: "Answers to questions, by result.",
		}, []string{"result"}),
		Expiries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "expiries_total", Help: "Questions whose time to answer was over, by result.",
		}, []string{"result"}),
		Dead: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "dead_letters_total", Help: "Messages moved to the dead letters.",
		}, []string{"reason"}),
		DeadDiscarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "dead_letters_discarded_total", Help: "Dead letters, or their bytes, that were discarded because there was no room for them.",
		}, []string{"reason"}),
		Deferred: counter("deferred_total", "Messages deferred with the server: more had to wait than may be redelivered with a delay."),
		InFlight: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: "tools_in_flight", Help: "Tools that run now."}),
		ToolSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Name: "tool_seconds", Help: "Time in the tool, all attempts.", Buckets: buckets(),
		}, []string{"workflow", "tool"}),
		WaitSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Name: "tool_wait_seconds", Help: "Time a call waited before its tool was entered: for a limit, or for a Python process.", Buckets: buckets(),
		}, []string{"workflow", "tool"}),
		TurnSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: ns, Name: "turn_seconds", Help: "Time from the inbound stream to the stored response.", Buckets: buckets(),
		}),
	}
	m.Asked = counter("questions_asked_total", "Questions that runs of tools have asked, counted again for each run.")
	m.Open = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: "questions_open", Help: "Questions whose run waits in memory."})
	m.Closed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: ns, Name: "questions_closed_total", Help: "Questions that a run no longer waits for: answered, expired, parked with their turn, or left open.",
	}, []string{"outcome"})
	m.Parked = counter("turns_parked_total", "Turns that this worker parked until a question is answered.")
	m.Resumed = counter("turns_resumed_total", "Parked turns that this worker resumed.")
	m.Programs, m.Messages, m.Corrections = newPrograms(ns), newMessages(ns), newCorrections(ns)
	for _, c := range slices.Concat([]prometheus.Collector{
		m.Turns, m.Duplicates, m.Conflicts, m.Redeliveries, m.Takeovers, m.LateResults, m.NotATurn, m.UnknownWrites, m.StoreRetries,
		m.Abandoned, m.Cached, m.Panics, m.Answers, m.Expiries, m.RepliesRefused, m.Dead, m.DeadDiscarded, m.Deferred, m.InFlight, m.ToolSeconds, m.WaitSeconds, m.TurnSeconds,
		m.Asked, m.Open, m.Closed, m.Parked, m.Resumed,
	}, m.Programs.all(), m.Messages.all(), m.Corrections.all()) {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// Other labels turns for which no manifest has a tool, and messages of unknown workflows.
const Other = "other"

// Turn counts a turn that has ended; b is nil if no manifest has a tool for it.
func (m *Metrics) Turn(b *bindings.Binding, outcome string) {
	workflow, tool := Other, Other
	if b != nil {
		workflow, tool = b.Workflow, b.Tool
	}
	m.Turns.WithLabelValues(workflow, tool, outcome).Inc()
}

// Tool counts a tool call and observes its times.
func (m *Metrics) Tool(b *bindings.Binding, out *engine.Outcome) {
	if out.Cached {
		m.Cached.WithLabelValues(b.Workflow, b.Tool).Inc()
	}
	if out.Entered {
		m.ToolSeconds.WithLabelValues(b.Workflow, b.Tool).Observe(out.Duration.Seconds())
	}
	if out.Entered && out.Waited > 0 {
		m.WaitSeconds.WithLabelValues(b.Workflow, b.Tool).Observe(out.Waited.Seconds())
	}
}
