package handlers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/oteltrace"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

const (
	traceOfTurn   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traceOfAnswer = "00-11111111111111111111111111111111-2222222222222222-01"
)

// trace has the handlers report spans, which the returned exporter keeps.
func (k *programKit) trace() *tracetest.InMemoryExporter {
	k.t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	k.Engine = engine.New(engine.Options{Tracer: oteltrace.New(provider, false)})
	return exporter
}

func traced(m *inbound.Message, traceparent string) *inbound.Message {
	m.Header = nats.Header{idempotency.HeaderTrace: {traceparent}}
	return m
}

// attr is an attribute of a span as text, "" if it has none of the name.
func attr(s *tracetest.SpanStub, name string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == "oneturn."+name {
			return a.Value.String()
		}
	}
	return ""
}

// tree are the spans in the order in which they ended, as call, effect, code, epoch and the call of the parent, "turn's" for the
// trace of the turn's message and "?" for any other one. The steps of a program are in the trace of its turn.
func tree(t *testing.T, spans tracetest.SpanStubs) (lines []string) {
	t.Helper()
	calls := map[string]string{"b7ad6b7169203331": "turn's"}
	for i := range spans {
		calls[spans[i].SpanContext.SpanID().String()] = attr(&spans[i], "call")
	}
	for i := range spans {
		s := &spans[i]
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", s.SpanContext.TraceID().String(), s.Name)
		parent, known := calls[s.Parent.SpanID().String()]
		if !known {
			parent = "?"
		}
		line := []string{s.Name, attr(s, "call"), attr(s, "effect"), attr(s, "code"), attr(s, "epoch"), attr(s, "depth"), "in " + parent}
		lines = append(lines, strings.Join(slices.DeleteFunc(line, func(part string) bool { return part == "" }), " "))
	}
	return lines
}

// states are the states of the program in its span, with what is known of each.
func states(spans tracetest.SpanStubs) (lines []string) {
	for i := range spans {
		for _, e := range spans[i].Events {
			if e.Name != "program.state" {
				continue
			}
			line := []string{attr(&spans[i], "call")}
			for _, a := range e.Attributes {
				line = append(line, a.Value.String())
			}
			lines = append(lines, strings.Join(line, " "))
		}
	}
	return lines
}

func TestProgramIsASpanWithItsStatesAndItsStepsAreItsChildren(t *testing.T) {
	t.Parallel()
	seen := ""
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		seen = call.Trace
		return echo(ctx, call)
	}})
	exporter := k.trace()
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), traced(k.plan("A", twoCalls, 1), traceOfTurn)).Do)
	spans := exporter.GetSpans()
	require.Equal(t, []string{
		"tool one turn#0 unsafe 1 1 in turn", "tool two turn#1 idempotent 1 1 in turn", "tool run_plan turn program 1 in turn's",
	}, tree(t, spans))
	require.Equal(t, []string{
		"turn plan_init", "turn plan_validated planner_finished", "turn dispatching_step 0", "turn awaiting_results 0", "turn merging_results step_succeeded 0",
		"turn dispatching_step 1", "turn awaiting_results 1", "turn merging_results step_succeeded 1", "turn completed",
	}, states(spans))
	require.Contains(t, seen, spans[1].SpanContext.SpanID().String(), "the tool gets the span of its step")
}

func TestStepThatFailsOrPanicsEndsItsSpanWithACode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails toolFunc
		state string
	}{
		"fails":  {func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, errors.New("no Ada") }, "step_failed"},
		"panics": {func(context.Context, *tools.Call) (tools.Result, error) { panic("no Ada") }, "panic"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"one": c.fails, "two": echo})
			exporter := k.trace()
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), traced(k.plan("A", twoCalls, 1), traceOfTurn)).Do)
			spans := exporter.GetSpans()
			require.Equal(t, []string{"tool one turn#0 unsafe tool_error 1 1 in turn", "tool run_plan turn program tool_error 1 in turn's"}, tree(t, spans))
			all := states(spans)
			require.Equal(t, "turn failed "+c.state+" 0", all[len(all)-1])
			for i := range spans {
				require.NotContains(t, spans[i].Status.Description, "Ada")
			}
		})
	}
}

func TestTraceOfAProgramContinuesAfterItWasParked(t *testing.T) {
	t.Parallel()
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		a, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Value: []byte(`{"id":` + string(a.Value) + `}`)}, err
	}
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "ask": asks})
	exporter := k.trace()
	plan := `{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"id": "x"}}, {"tool_name": "ask", "arguments": {"id": "$0.output.id"}}]}`
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), traced(k.plan("A", plan, 1), traceOfTurn)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), traced(k.answers(2, "turn#1/sure", "yes").Message, traceOfAnswer)).Do)
	require.True(t, k.response().Success)
	require.Equal(t, []string{
		"tool one turn#0 unsafe 1 1 in turn", "tool ask turn#1 replay 1 1 in turn", "tool run_plan turn program 1 in turn's",
		"tool ask turn#1 replay 2 1 in turn", "tool run_plan turn program 2 in turn's",
	}, tree(t, exporter.GetSpans()))
}

func TestTraceOfAProgramContinuesAfterATakeoverAndHasTheInterruptedStep(t *testing.T) {
	t.Parallel()
	in, dies := make(chan struct{}, 1), make(chan struct{})
	k := newProgramKit(t, map[string]toolFunc{"two": echo, "one": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		in <- struct{}{}
		<-dies
		return echo(ctx, call)
	}})
	exporter := k.trace()
	plan := `{"type": "tool_calls", "calls": [{"tool_name": "two", "arguments": {"id": "x"}}, {"tool_name": "one", "arguments": {"id": "$0.output.id"}}]}`
	held, lose := context.WithCancel(t.Context())
	lost := traced(k.plan("A", plan, 1), traceOfTurn)
	lost.Held = held
	over := make(chan inbound.Disposition, 1)
	go func() { over <- k.Handle(t.Context(), lost) }()
	<-in
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), traced(k.plan("A", plan, 2), traceOfTurn)).Do)
	require.Equal(t, events.CodeInterrupted, k.response().Code)
	require.Equal(t, []string{
		"tool one turn#1 unsafe interrupted 2 1 in turn", "tool run_plan turn program interrupted 2 in turn's",
	}, slices.DeleteFunc(tree(t, exporter.GetSpans()), func(line string) bool { return strings.HasSuffix(line, "in ?") }), "of the new owner: the span of the other one is open")
	require.InDelta(t, 1, testutil.ToFloat64(k.Metrics.Steps.WithLabelValues("WF", "one", "interrupted")), 0)
	require.InDelta(t, 1, testutil.ToFloat64(k.Metrics.Ended.WithLabelValues("WF", "plan", "failed")), 0)
	lose()
	close(dies)
	<-over
	require.InDelta(t, 1, testutil.ToFloat64(k.Metrics.Steps.WithLabelValues("WF", "one", "interrupted")), 0, "the late end does not count")
}

// series are the names and labels of the metrics whose names begin so. Each was counted or observed once.
func (k *kit) series(prefixes ...string) (lines []string) {
	k.t.Helper()
	families, err := k.registry.Gather()
	require.NoError(k.t, err)
	for _, family := range families {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(family.GetName(), prefix) }) {
			continue
		}
		for _, m := range family.GetMetric() {
			words := []string{strings.TrimPrefix(family.GetName(), "oneturn_")}
			for _, label := range m.GetLabel() {
				words = append(words, label.GetValue())
			}
			line := strings.Join(words, " ")
			if m.GetHistogram() != nil {
				require.Equal(k.t, uint64(1), m.GetHistogram().GetSampleCount(), line)
			} else {
				require.InDelta(k.t, 1, m.GetCounter().GetValue(), 0, line)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestMetricsCountProgramsAndTheirSteps(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, errors.New("broken") }
	const both = `{"plan": {"steps": [{"id": "a", "agent": {"agent_id": "one"}, "on_error": "continue"}, {"id": "b", "agent": {"agent_id": "two"}}]}}`
	for name, c := range map[string]struct {
		agent, plan string
		one         toolFunc
		want        []string
	}{
		"success": {"A", twoCalls, echo, []string{
			"program_seconds plan WF", "program_step_seconds one WF", "program_step_seconds two WF",
			"program_steps_total success one WF", "program_steps_total success two WF", "programs_total plan success WF",
		}},
		"halted": {"A", twoCalls, broken, []string{
			"program_seconds plan WF", "program_step_seconds one WF", "program_steps_total tool_error one WF", "programs_total plan failed WF",
		}},
		"partial": {"O", both, broken, []string{
			"program_seconds orchestrate WF", "program_step_seconds one WF", "program_step_seconds two WF",
			"program_steps_total success two WF", "program_steps_total tool_error one WF", "programs_total orchestrate partial WF",
		}},
		"refused":    {"A", `{"type": "tool_calls"}`, echo, []string{"program_refusals_total invalid", "programs_total plan invalid WF"}},
		"no planner": {"A", `{"prompt": "do it"}`, echo, []string{"program_refusals_total planner_disabled", "programs_total plan invalid WF"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"one": c.one, "two": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan(c.agent, c.plan, 1)).Do)
			require.Equal(t, c.want, k.series("oneturn_program"))
		})
	}
}

func TestNoTextOfAPlanBecomesALabel(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]string{
		"unknown tool": `{"type": "tool_calls", "calls": [{"tool_name": "evil", "arguments": {}}]}`,
		"odd type":     `{"type": "evil", "calls": []}`,
		"odd keys":     `{"type": "tool_calls", "reason": "evil", "status": "evil", "calls": [{"tool_name": "one", "arguments": {"id": "evil"}, "kind": "evil", "call": "evil"}]}`,
		"result":       `{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"status": "evil", "code": "evil", "success": "evil"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"one": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", plan, 1)).Do)
			lines := k.series("oneturn_program")
			require.NotEmpty(t, lines)
			require.NotContains(t, strings.Join(lines, "\n"), "evil")
		})
	}
}

func TestToolThatIsGoneWhenItsStepBeginsDoesNotBecomeALabel(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo})
	without := loadPrograms(t, strings.NewReplacer("name: two,", "name: three,", "one, two", "one, three").Replace(programWorkflow))
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		a, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Value: []byte(`{"id":` + string(a.Value) + `}`)}, err
	}
	k.Tool = func(*bindings.Binding) (tools.Invoker, error) { return toolFunc(asks), nil }
	plan := `{"type": "tool_calls", "calls": [{"tool_name": "ask", "arguments": {"id": "x"}}, {"tool_name": "two", "arguments": {"id": "$0.output.id"}}]}`
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", plan, 1)).Do)
	k.Bindings = func() *bindings.Set { return without }
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.answers(2, "turn#0/sure", "yes").Message).Do)
	require.Equal(t, events.CodeUnknownTool, k.response().Code, k.response().Content)
	require.Contains(t, k.series("oneturn_program"), "program_steps_total unknown_tool other other")
	require.NotContains(t, strings.Join(k.series("oneturn_program"), "\n"), "two")
}

// rivalStore is a journal in which another worker ends the steps of a turn just before the worker under test does.
type rivalStore struct{ *storetest.Memory }

func (s rivalStore) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if key, ok := subjects.ParseKey(r.Key); ok && key.Kind == events.RecordResponse && key.Call != subjects.SingleCall {
		rival := r
		rival.Meta.Nonce, rival.Meta.Owner = "rival", "other"
		if _, err := s.Memory.Create(ctx, rival); err != nil {
			return 0, err
		}
	}
	return s.Memory.Create(ctx, r)
}

func TestStepThatEndsWithItsTurnIsCountedByTheWorkerThatStoredItsEnd(t *testing.T) {
	t.Parallel()
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{}, err
	}
	for name, c := range map[string]struct {
		rival bool
		want  float64
	}{"own": {false, 1}, "of another worker": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"ask": asks})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", calls(`ask {}`), 1)).Do)
			require.Contains(t, k.names(), "p 0.park.1")
			if c.rival {
				k.Journal = idempotency.New(rivalStore{k.store}, "w", idempotency.Options{})
			}
			body := []byte(`{"kind":"cancel","app_id":"app","chat_id":"chat","workflow_name":"WF","turn_idempotency_key":"turn"}`)
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
			require.Equal(t, events.CodeCancelled, k.response().Code)
			require.Equal(t, events.CodeCancelled, k.stepResponses()["0"].Code)
			require.InDelta(t, c.want, testutil.ToFloat64(k.Metrics.Steps.WithLabelValues("WF", "ask", "cancelled")), 0)
		})
	}
}
