package oneturn_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/turntest"
)

// soon is the interval of sweeps in these tests.
const soon = 100 * time.Millisecond

// fixer is a worker whose tool notes what it is given, with the given effect.
type fixer struct {
	mu     sync.Mutex
	seen   []string
	epochs []int
}

func (f *fixer) config(effect oneturn.Effect) oneturn.Config {
	fix := func(ctx context.Context, in greeting) (greeted, error) {
		call := oneturn.CallFrom(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, in.Name)
		f.epochs = append(f.epochs, call.Epoch)
		return greeted{"success", "Hello, " + in.Name[:min(3, len(in.Name))] + "!"}, nil
	}
	return oneturn.Config{
		SweepEvery: soon,
		Tools:      []oneturn.Tool{oneturn.NewTool("greet", fix, oneturn.For("Hello", "Greeter", "Greeting"), oneturn.WithEffect(effect))},
	}
}

func (f *fixer) entered() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.seen...)
}

// orphan is a turn as a worker leaves it that died inside the tool, and whose message is gone.
type orphan struct {
	s     *turntest.Server
	js    jetstream.JetStream
	space subjects.Space
	id    oneturn.TurnID
	key   subjects.Key
	event events.ToolCall
	meta  map[string]string
}

func newOrphan(t *testing.T, s *turntest.Server, turn, effect string) *orphan {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	o := &orphan{s: s, js: js, space: space, id: oneturn.TurnID{App: "app", Chat: "chat 1", Turn: turn}}
	o.key = subjects.TurnKey(o.id.App, o.id.Chat, "", turn)
	o.event = events.ToolCall{
		ID: turn, AppID: o.id.App, ChatID: o.id.Chat, Turn: turn, Agent: "Greeter", ToolName: "greet", ToolCallID: turn, CallID: turn,
		Corr: turn, WorkflowName: "Hello", InteractionType: events.InteractionAutoTool,
		Payload: events.ToolCallPayload{ToolArgs: map[string]any{"name": "Ada"}},
	}
	o.meta = map[string]string{
		idempotency.HeaderOwner: "dead worker", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1",
		idempotency.HeaderEffect: effect, idempotency.HeaderFingerprint: strings.Repeat("ab", 32),
		idempotency.HeaderLease: "ONETURN_IN/987654/1",
	}
	return o
}

// store writes the claim.
func (o *orphan) store(t *testing.T) {
	t.Helper()
	body, err := events.Encode(events.KindToolCall, &o.event, time.Now())
	require.NoError(t, err)
	o.record(t, o.key.Public(events.KindToolCall), body, o.meta)
}

func (o *orphan) record(t *testing.T, key string, body []byte, meta map[string]string) {
	t.Helper()
	m := &nats.Msg{Subject: o.space.JournalSubject(key), Header: nats.Header{}, Data: body}
	for name, value := range meta {
		m.Header.Set(name, value)
	}
	_, err := o.js.PublishMsg(t.Context(), m)
	require.NoError(t, err)
}

// response waits for the end of the turn.
func (o *orphan) response(t *testing.T) *events.ToolResponse {
	t.Helper()
	kv, err := o.js.KeyValue(t.Context(), o.space.TurnsBucket())
	require.NoError(t, err)
	var r events.ToolResponse
	require.Eventually(t, func() bool {
		entry, err := kv.Get(t.Context(), o.key.Public(events.KindToolResponse))
		if err != nil {
			return false
		}
		m, err := events.Parse(entry.Value())
		return err == nil && m.As(&r) == nil
	}, 20*time.Second, 20*time.Millisecond, "the turn has no end")
	return &r
}

func TestSweepEndsATurnWhoseMessageIsGoneByItsEffect(t *testing.T) {
	t.Parallel()
	s := server(t)
	unsafe, again := newOrphan(t, s, "unsafe", "unsafe"), newOrphan(t, s, "again", "idempotent")
	unsafe.store(t)
	again.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))

	r := unsafe.response(t)
	require.Equal(t, events.CodeInterrupted, r.Code)
	require.Equal(t, []string{"app", "chat 1", "unsafe", "Greeter", "greet", "Hello"}, []string{r.AppID, r.ChatID, r.Turn, r.Agent, r.ToolName, r.WorkflowName})
	r = again.response(t)
	require.True(t, r.Success)
	require.Equal(t, "Hello, Ada!", r.Content)
	require.Equal(t, []string{"Ada"}, f.entered())
	require.Equal(t, []int{2}, f.epochs)
	requireDrained(t, s)

	turn, err := again.load(t)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ab", 32), turn.Response.Meta.Fingerprint, "who waits for the data sees its end")
}

func (o *orphan) load(t *testing.T) (*idempotency.Turn, error) {
	t.Helper()
	kv, err := idempotency.NewKV(o.s.Connect(), o.space)
	require.NoError(t, err)
	defer kv.Close()
	return idempotency.Load(t.Context(), kv, o.key)
}

// TestTurnOfAKilledWorkerWhoseMessageWasDeletedEnds goes the whole way: a worker process dies
// inside the tool, an operator deletes the message, another worker sweeps.
func TestTurnOfAKilledWorkerWhoseMessageWasDeletedEnds(t *testing.T) {
	t.Parallel()
	for effect, code := range map[oneturn.Effect]events.Code{oneturn.Unsafe: events.CodeInterrupted, oneturn.Idempotent: ""} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			s := server(t)
			p := newPool(t, s, string(effect))
			p.start(1)
			id := oneturn.TurnID{App: "app", Chat: "c", Turn: "t"}
			c := client(t, s)
			receipt, err := c.Publish(t.Context(), &oneturn.Turn{
				TurnID: id, Workflow: "Work", Agent: "Worker", Model: "Work", Data: map[string]any{"millis": number(2000)},
			})
			require.NoError(t, err)
			_ = p.end(p.entered("t"), syscall.SIGKILL) // it was killed
			js, err := jetstream.New(s.Connect())
			require.NoError(t, err)
			in, err := js.Stream(t.Context(), "ONETURN_IN")
			require.NoError(t, err)
			require.NoError(t, in.DeleteMsg(t.Context(), receipt.Sequence))
			timers, err := js.Stream(t.Context(), "ONETURN_TIMERS")
			require.NoError(t, err)
			require.NoError(t, timers.Purge(t.Context())) // the dead worker's schedule is minutes away; a lost one is made anew
			tool := oneturn.NewTool("work", func(context.Context, work) (string, error) { return "done", nil },
				oneturn.For("Work", "Worker", "Work"), oneturn.WithEffect(effect))
			start(t, s, oneturn.Config{Tools: []oneturn.Tool{tool}, SweepEvery: soon})
			require.Equal(t, code, await(t, c, id).Code)
		})
	}
}

func TestSweepRunsFromStoredArgumentsThatAreABlob(t *testing.T) {
	t.Parallel()
	s := server(t)
	long := "Ada" + strings.Repeat("!", 300<<10)
	o := newOrphan(t, s, "large", "keyed")
	blobs, err := handlers.NewBlobs(t.Context(), s.Connect(), o.js, o.space)
	require.NoError(t, err)
	args, err := events.AppendJSON(nil, map[string]any{"name": long})
	require.NoError(t, err)
	o.event.Payload.ToolArgs, err = blobs.Shrink(t.Context(), o.key, events.KindToolCall, nil, args)
	require.NoError(t, err)
	o.store(t)
	lost := newOrphan(t, s, "lost", "keyed")
	lost.event.Payload.ToolArgs = events.Blob{Blob: lost.key.String() + ".tool_call." + strings.Repeat("0", 16), SHA256: strings.Repeat("0", 64), Size: 1}
	lost.store(t)
	looksLike := newOrphan(t, s, "looks like", "keyed") // data of the turn that merely names another turn's blob
	looksLike.event.Payload.ToolArgs = o.event.Payload.ToolArgs
	looksLike.store(t)

	var f fixer
	start(t, s, f.config(oneturn.Keyed))
	require.True(t, o.response(t).Success)
	require.Equal(t, events.CodeInterrupted, lost.response(t).Code)
	require.True(t, looksLike.response(t).Success)
	names := f.entered()
	require.Len(t, names, 2)
	require.True(t, slices.Contains(names, long))
	require.True(t, slices.Contains(names, ""), "only the turn's own blob is read")
}

func TestSweepLeavesParkedTurnsAndTurnsWithAMessageAlone(t *testing.T) {
	t.Parallel()
	s := server(t)
	parked := newOrphan(t, s, "parked", "replay")
	parked.store(t)
	parked.record(t, parked.key.Private("park", "1"), nil, map[string]string{
		idempotency.HeaderOwner: "w", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1", idempotency.HeaderVerdict: "parked",
	})
	held := newOrphan(t, s, "held", "idempotent")
	ack, err := held.js.Publish(t.Context(), held.space.In("other", "structured_output_ready", "app", "Hello", "chat 1"), nil)
	require.NoError(t, err)
	held.meta[idempotency.HeaderLease] = fmt.Sprintf("ONETURN_IN/%d/1", ack.Sequence)
	held.store(t)
	orphaned := newOrphan(t, s, "orphaned", "idempotent")
	orphaned.store(t)
	var f fixer
	registry := prometheus.NewRegistry()
	c := f.config(oneturn.Idempotent)
	c.Registry = registry
	start(t, s, c)
	require.True(t, orphaned.response(t).Success) // all are of one age: the others were seen too
	sweeps := gauge(t, registry, "oneturn_sweep_timestamp_seconds")
	require.Eventually(t, func() bool {
		return gauge(t, registry, "oneturn_sweep_timestamp_seconds") > sweeps && gauge(t, registry, "oneturn_sweep_open_turns") == 2
	}, 20*time.Second, 20*time.Millisecond)
	require.Greater(t, gauge(t, registry, "oneturn_sweep_oldest_open_turn_seconds"), 1.0)
	require.Len(t, f.entered(), 1)
	for _, o := range []*orphan{parked, held} {
		turn, err := o.load(t)
		require.NoError(t, err)
		require.Nil(t, turn.Response)
	}
}

// gauge reads a metric, 0 when it has not been set.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return 0
}

func TestTurnPastItsLifeEndsAsExpired(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "old", "replay")
	o.store(t)
	o.record(t, o.key.Private("park", "1"), nil, map[string]string{
		idempotency.HeaderOwner: "w", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1", idempotency.HeaderVerdict: "parked",
	})
	var f fixer
	c := f.config(oneturn.Effect("replay"))
	c.MaxTurnLife = 500 * time.Millisecond
	start(t, s, c)
	r := o.response(t)
	require.Equal(t, events.CodeExpired, r.Code)
	require.Contains(t, r.Content, "500ms")
	require.Empty(t, f.entered())
}

func TestTurnWithRecordsThatCannotBeReadEndsAsStateCorrupt(t *testing.T) {
	t.Parallel()
	s := server(t)
	headers, event, foreign := newOrphan(t, s, "headers", "idempotent"), newOrphan(t, s, "event", "idempotent"), newOrphan(t, s, "foreign", "idempotent")
	headers.meta[idempotency.HeaderEpoch] = "one"
	headers.store(t)
	event.record(t, event.key.Public(events.KindToolCall), []byte(`{"type":`), event.meta)
	foreign.event.ChatID = "another chat"
	foreign.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	for _, o := range []*orphan{headers, event, foreign} {
		r := o.response(t)
		require.Equal(t, events.CodeStateCorrupt, r.Code)
		require.Equal(t, []string{o.id.App, o.id.Chat, o.id.Turn}, []string{r.AppID, r.ChatID, r.Turn})
	}
	require.Empty(t, f.entered())
}

func TestTurnWhoseKeyWasUsedBeforeIsResumedUnderItsOwnName(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "t", "idempotent")
	o.key.Turn = subjects.ReusedTurnToken("", "t", o.meta[idempotency.HeaderFingerprint][:16])
	o.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	r := o.response(t)
	require.True(t, r.Success)
	require.Equal(t, "t", r.Turn)
	require.Equal(t, events.QualifiedCallID("t", o.key.Turn), r.ToolCallID)
}

func TestToolThatNobodyHasAnyMoreEndsItsOrphanAsInterrupted(t *testing.T) {
	t.Parallel()
	s := server(t)
	tool, workflow := newOrphan(t, s, "tool", "idempotent"), newOrphan(t, s, "workflow", "idempotent")
	tool.event.ToolName = "gone"
	tool.store(t)
	workflow.event.WorkflowName = "Gone"
	workflow.store(t)
	var f fixer
	c := f.config(oneturn.Idempotent)
	c.BindingGrace = 200 * time.Millisecond
	start(t, s, c)
	require.Equal(t, events.CodeInterrupted, tool.response(t).Code)
	require.Equal(t, events.CodeInterrupted, workflow.response(t).Code)
	require.Empty(t, f.entered())
}

func TestOneScheduleGoesRoundAmongWorkersAndSurvivesThem(t *testing.T) {
	t.Parallel()
	s := server(t)
	var f fixer
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	timers, err := js.Stream(t.Context(), "ONETURN_TIMERS")
	require.NoError(t, err)
	count := func(c oneturn.Config) (oneturn.Config, func() float64) {
		registry := prometheus.NewRegistry()
		c.Registry = registry
		return c, func() float64 { return sweeps(t, registry) }
	}
	c1, n1 := count(f.config(oneturn.Unsafe))
	c2, n2 := count(f.config(oneturn.Unsafe))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 2)
	for _, c := range []oneturn.Config{c1, c2} {
		w, err := oneturn.NewWorker(s.Connect(), c)
		require.NoError(t, err)
		go func() { done <- w.Run(ctx) }()
	}
	most := uint64(0)
	require.Eventually(t, func() bool {
		info, err := timers.Info(t.Context())
		require.NoError(t, err)
		most = max(most, info.State.Msgs)
		return n1()+n2() >= 8
	}, 20*time.Second, time.Millisecond)
	require.LessOrEqual(t, most, uint64(2), "a schedule, and the sweep that is due")
	stop()
	require.NoError(t, <-done)
	require.NoError(t, <-done)

	info, err := timers.Info(t.Context())
	require.NoError(t, err)
	require.Positive(t, info.State.Msgs, "the schedule is there without a worker")
	c3, n3 := count(f.config(oneturn.Unsafe))
	c3.SweepEvery = time.Hour // it makes no schedule of its own
	start(t, s, c3)
	require.Eventually(t, func() bool { return n3() == 1 }, 20*time.Second, 5*time.Millisecond)
}

// sweeps is how many sweeps a worker has done.
func sweeps(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "oneturn_sweep_seconds" {
			return float64(family.GetMetric()[0].GetHistogram().GetSampleCount())
		}
	}
	return 0
}

func TestSweepCarriesItsStateAndReadsTheJournalOnce(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "parked", "replay")
	o.store(t)
	o.record(t, o.key.Private("park", "1"), nil, map[string]string{
		idempotency.HeaderOwner: "w", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1", idempotency.HeaderVerdict: "parked",
	})
	ended := newOrphan(t, s, "ended", "unsafe")
	ended.store(t)
	ended.record(t, ended.key.Public(events.KindToolResponse), []byte(`{}`), ended.meta)
	var f fixer
	start(t, s, f.config(oneturn.Unsafe))
	timers, err := o.js.Stream(t.Context(), "ONETURN_TIMERS")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		m, err := timers.GetLastMsgForSubject(t.Context(), o.space.SweepTimer())
		if err != nil {
			return false
		}
		state, err := handlers.DecodeSweepState(m.Data)
		require.NoError(t, err)
		return state.From == 5 && len(state.Open) == 1 && state.Open[0] == handlers.OpenClaim{Key: o.key.String(), Seq: 1}
	}, 20*time.Second, 5*time.Millisecond)
}

func TestHostileDueAndResumeMessagesAreDeadLettersAndSweepsGoOn(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "t", "idempotent")
	publish := func(subject, body string) {
		_, err := o.js.Publish(t.Context(), subject, []byte(body))
		require.NoError(t, err)
	}
	due := []string{
		``, `null`, `[]`, `{"from":-1,"open":[]}`, `{"from":1e3,"open":[]}`, `{"open":[]}`, `{"from":0,"open":{}}`, `{"from":0,"open":[{"key":"a.*.b.0","seq":1}]}`,
		`{"from":0,"open":[{"key":"a.b.c.0"}]}`, `{"from":0,"open":[],"from":1}`,
		`{"from":0,"open":[` + strings.Repeat(`{"key":"a.b.c.0","seq":1},`, 10_000) + `{"key":"a.b.c.0","seq":1}]}`,
	}
	for _, body := range due {
		publish(o.space.SweepDue(), body)
	}
	publish("oneturn.due.nothing", `{}`)
	resume := o.space.In("default", "resume", "app", "Hello", "chat 1")
	bodies := []string{
		`{`, `{"kind":"resume"}`, `{"kind":"resume","key":"a.b"}`, `{"kind":"resume","key":"app.other.0-t.0"}`,
		`{"kind":"resume","key":"app.=2Dx.0-t.0"}`, `{"kind":"resume","key":"` + o.key.App + "." + o.key.Chat + "." + o.key.Turn + `.1"}`,
		`{"kind":"resume","app_id":"evil","chat_id":"chat 1","turn":"t","workflow_name":"Hello"}`,
		`{"kind":"resume","app_id":"app","chat_id":"chat 1","turn":"t","workflow_name":"Other"}`,
	}
	for _, body := range bodies {
		publish(resume, body)
	}
	// These name turns that need nothing.
	publish(resume, `{"kind":"resume","app_id":"app","chat_id":"chat 1","turn":"nobody","workflow_name":"Hello"}`)
	publish(o.space.SweepDue(), `{"from":18446744073709551615,"open":[{"key":"a.b.c.0","seq":9}]}`) // of another journal
	o.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	require.True(t, o.response(t).Success)
	requireDrained(t, s)
	dead, err := o.js.Stream(t.Context(), "ONETURN_DEAD")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := dead.Info(t.Context())
		return err == nil && info.State.Msgs == uint64(len(due)+1+len(bodies))
	}, 10*time.Second, 10*time.Millisecond)
}

func TestAnyoneMayAskForAResumeAndItDoesNothingToATurnThatRuns(t *testing.T) {
	t.Parallel()
	s := server(t)
	entered, release := make(chan struct{}, 4), make(chan struct{})
	slow := func(context.Context, greeting) (greeted, error) {
		entered <- struct{}{}
		<-release
		return greeted{"success", "done"}, nil
	}
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", slow, oneturn.For("Hello", "Greeter", "Greeting"))}})
	c := client(t, s)
	one := turn("t", map[string]any{"name": "Ada"})
	publish(t, c, one)
	<-entered
	o := newOrphan(t, s, "t", "")
	body, err := events.EncodeResume(&events.Resume{TurnID: one.TurnID, Workflow: "Hello"}, time.Now())
	require.NoError(t, err)
	ack, err := o.js.Publish(t.Context(), o.space.In("default", "resume", "app", "Hello", "chat 1"), body)
	require.NoError(t, err)
	in, err := o.js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := in.GetMsg(t.Context(), ack.Sequence)
		return err != nil
	}, 10*time.Second, 5*time.Millisecond, "the resume is settled while the tool runs")
	close(release)
	require.True(t, await(t, c, one.TurnID).Success)
	require.Empty(t, entered)
}

func TestResumeGoesToThePoolThatClaimedTheTurn(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "t", "idempotent")
	o.meta[idempotency.HeaderPool] = "gpu"
	o.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	in, err := o.js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		m, err := in.GetLastMsgForSubject(t.Context(), o.space.In("gpu", "resume", "app", "Hello", "chat 1"))
		if err != nil {
			return false
		}
		kind, err := events.PeekKind(m.Data)
		return err == nil && kind == events.KindResume
	}, 20*time.Second, 20*time.Millisecond)
}
