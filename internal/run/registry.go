package run

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/budget"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// This file has the runs of this process as a whole: their configuration, the registry in which the live copy of
// a cancel or an ack finds them, and the budgets of those that wait in memory.

// Config configures the runs of a process. Its fields are read when they are needed, so a change takes effect on
// runs that have begun. All fields without a default are required.
type Config struct {
	Space    subjects.Space
	Journal  *idempotency.Journal
	Bindings func() *bindings.Set
	Blobs    store.BlobStore                         // large payloads
	Live     func(subject string, data []byte) error // publishes without storing
	Metrics  *metrics.Metrics
	Logger   *slog.Logger
	Now      func() time.Time
	// SecretKeys seal the answers to secret questions; nil refuses such questions.
	SecretKeys *secrets.Keys

	// ServerTime returns the time by the clock of the server: ages of messages are measured by it, the timeout of a
	// question begins with it, and an expiry that comes early waits for it. Nil takes Now.
	ServerTime func(ctx context.Context) (time.Time, error)
	// Schedule has the server send an expire event when the time to answer a question is over;
	// again for the same question is not an error. Nil: questions expire with their turn.
	Schedule func(ctx context.Context, e *events.Expire) error
	// MaxTurnLife is how long after its claim a resume ends a turn as expired. 0 means never.
	MaxTurnLife time.Duration
	// ParkAfter is how long a run that asks people waits in memory before its turn is parked. 0
	// or less parks it immediately.
	ParkAfter time.Duration
	// MaxWaiting bounds the runs that wait in memory and may be parked: further ones are parked
	// immediately. It defaults to a 16th of the MaxAckPending of the consumer, and is at most that.
	MaxWaiting int
	// Timing is the clock of runs that wait for people. Nil is real time.
	Timing Timing
}

// Shares of a process in the messages that its pool may hold, one in so many.
const (
	limitedShare    = 64 // runs that wait for a limit
	unparkableShare = 32 // runs that wait for people and must not be parked
	parkableShare   = 16 // runs that wait for people and can be parked
)

// warnedTools is how many tools are remembered for which the warning about their effect was logged.
const warnedTools = 1024

// Registry has the runs of a process by journal key, and what they share. It is safe for concurrent use.
type Registry struct {
	cfg         *Config
	lines       *throttle.Lines
	checkSchema func(schema json.RawMessage) error
	shrink      shrinkFunc
	warned      *recent.Set[string] // tools with effect unsafe that have asked, with their workflows

	parkable    atomic.Int64   // runs that wait for people and can be parked
	maxParkable atomic.Int64   // how many of those may wait in memory
	unparkable  *budget.Budget // runs that wait for people and must not be parked
	limited     *budget.Budget // runs that wait for a limit without a slot
	draining    atomic.Bool

	mu   sync.Mutex
	runs map[string]*Run
}

// shrinkFunc stores data as a blob if it is too large for a record, and returns the reference or else value.
// Lease and tool are the contexts of the message and of the tool.
type shrinkFunc func(lease, tool context.Context, key subjects.Key, kind string, value any, data []byte) (any, error)

// NewRegistry returns a registry without runs. It keeps c and sets its defaults; checkSchema reports why the schema
// of a question cannot be used. Its budgets are empty until [Registry.Resize] is called.
func NewRegistry(c *Config, lines *throttle.Lines, checkSchema func(schema json.RawMessage) error, shrink shrinkFunc) *Registry {
	if c.Timing == nil {
		c.Timing = realTime{}
	}
	return &Registry{
		cfg: c, lines: lines, checkSchema: checkSchema, shrink: shrink, warned: recent.New[string](warnedTools, 0),
		unparkable: budget.New(0), limited: budget.New(0), runs: map[string]*Run{},
	}
}

// Resize sets how many messages the workers of the pool may hold together. Runs that wait stay as they are.
func (g *Registry) Resize(maxAckPending int) {
	g.maxParkable.Store(int64(max(maxAckPending/parkableShare, 1)))
	g.limited.Resize(maxAckPending / limitedShare)
	g.unparkable.Resize(maxAckPending / unparkableShare)
}

// mayWait returns how many runs that can be parked may wait in memory.
func (g *Registry) mayWait() int64 {
	most := g.maxParkable.Load()
	if g.cfg.MaxWaiting > 0 {
		most = min(most, int64(g.cfg.MaxWaiting))
	}
	return most
}

// Start registers a run of a turn that the journal has decided to run, until [Registry.Remove]. Ctx is the context of
// its tool, stop ends it, begun is the time by the clock of the server.
func (g *Registry) Start(ctx context.Context, stop context.CancelCauseFunc, t *Turn, d idempotency.Decision, begun time.Time) *Run {
	t.NoteSecrets(d)
	t.Asked = d.Turn != nil && len(d.Turn.Questions()) > 0
	r := &Run{own: shared{hold: d.Hold, busy: 1}, reg: g, cfg: g.cfg, t: t, tool: ctx, stop: stop, before: d.Turn, begun: begun, effect: d.Hold.Effect, busyNow: true}
	if d.Turn != nil {
		r.own.records = len(d.Turn.Records)
	}
	r.shared = &r.own
	r.root, r.only[0] = r, r
	r.calls = r.only[:]
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs[t.Name] = r
	return r
}

// Remove removes a run, unless another run of the turn has replaced it.
func (g *Registry) Remove(r *Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs[r.t.Name] == r {
		delete(g.runs, r.t.Name)
	}
}

// Len returns the number of runs.
func (g *Registry) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.runs)
}

// Hold returns the hold of the run of a turn, by the name of its key, and whether there is one.
func (g *Registry) Hold(name string) (hold idempotency.Hold, running bool) {
	if r := g.find(name); r != nil {
		return r.Hold(), true
	}
	return hold, false
}

// Stop ends the context of the tool of a turn with a cause, if it runs.
func (g *Registry) Stop(name string, cause error) {
	if r := g.find(name); r != nil {
		r.stop(cause)
	}
}

// AckSeen has the run of a turn read a question when the live copy of ack, the ack of its answer, arrives.
func (g *Registry) AckSeen(ack subjects.Record) {
	if r := g.find(ack.String()); r != nil && ack.ID != "" {
		r.notify(ack.ID)
	}
}

// PollQuestions has all runs that wait for answers read their questions: live copies may have been lost.
func (g *Registry) PollQuestions() {
	for _, r := range g.all() {
		r.notify("")
	}
}

// Drain parks all runs that wait for people, and those that begin to wait from now on: the worker is about to stop.
func (g *Registry) Drain() {
	g.draining.Store(true)
	for _, r := range g.all() {
		r.mu.Lock()
		if r.waits {
			r.waiting.timer.Reset(0)
		}
		r.mu.Unlock()
	}
}

// Complete publishes that the run of a turn that asked people is over, for now or finally.
func (g *Registry) Complete(t *Turn, status int, reason string) {
	event, err := events.Encode(events.KindRunComplete, &events.RunComplete{
		Kind: events.KindRunComplete, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.CallID, WorkflowName: t.Workflow, Status: status, Reason: reason,
	}, g.cfg.Now())
	if err == nil {
		err = g.cfg.Live(g.cfg.Space.Live(t.App, t.Chat, events.KindRunComplete), event)
	}
	if err != nil {
		g.cfg.Logger.Debug("run_complete could not be published", "chat", t.Chat, "turn", t.CallID, "err", err)
	}
}

func (g *Registry) find(name string) *Run {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs[name]
}

func (g *Registry) all() []*Run {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*Run, 0, len(g.runs))
	for _, r := range g.runs {
		list = append(list, r)
	}
	return list
}

// warn logs a warning about a turn that its tenant can cause as often as it likes, see [throttle.Lines].
func (g *Registry) warn(t *Turn, msg string, args ...any) {
	app, _ := g.cfg.Space.InSender(t.Message.Subject)
	g.lines.Log(t.Message.Held, g.cfg.Logger, g.cfg.Now(), msg+" ", app, throttle.Several, slog.LevelWarn, msg, args...)
}

// warnUnsafe warns once for each tool that asks people and cannot be entered again.
func (g *Registry) warnUnsafe(t *Turn) {
	if g.warned.Add(t.Binding.Workflow+"/"+t.Binding.Tool, g.cfg.Now()) {
		return
	}
	g.cfg.Logger.Warn("a tool with effect unsafe asks people: its turns wait in memory and are lost with the worker (interrupted); "+
		"set effect: replay in its manifest if what it does before a question may be repeated, or is in a step",
		"workflow", t.Binding.Workflow, "tool", t.Binding.Tool)
}
