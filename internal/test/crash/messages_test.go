//go:build failpoints

package crash_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// Agents of the workflow of messages. There is an architect for each effect: Architect_unsafe and so on.
const (
	interviewer = "Interviewer" // its text NEXT sets two variables, and is hidden
	critic      = "Critic"      // has a model and no tool
	moderator   = "Moderator"   // a model decides who speaks after it
	architect   = "Architect_"  // its output calls the tool of its effect
)

// teamIsDone is the condition of the moderator's rule.
const teamIsDone = "the team is done"

// messageRow is a row of the table of messages in docs/guarantees.md: a message, where its worker dies, and what is expected after
// a clean worker has completed it.
type messageRow struct {
	name   string
	fails  string // failpoints of the first worker
	lives  bool   // the first worker does not die, and completes the message
	every  bool   // for each effect of the tool of its turn
	effect string // for this one; default: unsafe
	shape  func(effect string) shape

	cut    bool // the tool is called when the worker dies, so its effect decides
	ran    int  // how often it was entered then, or altogether; default: once
	code   events.Code
	script func(r *rig, first *process) // what happens to the first worker, if it is more than that
	then   func(r *rig)                 // after its death
	people []oneturntest.Rule
	sweep  time.Duration
	also   func(t *testing.T, r *rig, facts *oneturntest.Facts)
}

// shape is a message, and the events that follow from it.
type shape struct {
	agent   string
	content any
	events  []string // public records in their order; the call of its turn is turn.tool_call
	sets    []string // variables
	to      string   // next speaker
	turn    string   // key of the turn that counts, of a correction; default: the one of the message
}

// whole is a message from which everything follows: variables, a turn whose tool changes another one, and a handoff by that.
func whole(in stepInput) func(effect string) shape {
	return func(effect string) shape {
		in.Name, in.Sets = "build", "built"
		output, err := json.Marshal(in)
		if err != nil {
			panic(err) // it has texts and numbers only
		}
		return shape{
			agent: architect + effect, content: "DONE. Here it is:\n```json\n" + string(output) + "\n```",
			events: []string{"text", "context_update.first", "context_update.second", "turn.tool_call", "turn.tool_response", "handoff"},
			sets:   []string{"first", "second", "built"}, to: critic,
		}
	}
}

// plain is a message without a turn.
func plain(string) shape {
	return shape{
		agent: interviewer, content: "NEXT", events: []string{"text", "context_update.first", "context_update.second", "handoff"},
		sets: []string{"first", "second"}, to: moderator,
	}
}

// structured is a message of an agent whose output calls no tool.
func structured(string) shape {
	return shape{agent: critic, content: `{"name":"good"}`, events: []string{"text", "structured_output", "handoff"}, to: interviewer}
}

// corrected is a message whose output does not fit. The turn of its correction is the one of a whole message.
func corrected(effect string) shape {
	s := whole(stepInput{})(effect)
	s.content, s.turn = `DONE. {"title": "Shop"}`, theTurn.Turn+"~1"
	s.events = []string{
		"text", "context_update.first", "context_update.second", "turn.tool_call", "turn.tool_response", "c1.tool_call", "c1.tool_response",
		"turn~1.tool_call", "turn~1.tool_response", "handoff",
	}
	return s
}

// correctedOutput is a message of an agent whose output calls no tool, and does not fit.
func correctedOutput(effect string) shape {
	s := structured(effect)
	s.content, s.events = `{"title": "Shop"}`, []string{"text", "c1.tool_call", "c1.tool_response", "structured_output", "handoff"}
	return s
}

// judged is a message after which a model decides who speaks.
func judged(string) shape {
	asked := handoff.Question{Rule: 4, Condition: teamIsDone, To: critic}
	call := asked.Call()
	return shape{agent: moderator, content: "Are we done?", events: []string{"text", call + ".tool_call", call + ".tool_response", "handoff"}, to: critic}
}

// newMessages is a rig whose workflow has agents that talk.
func newMessages(t *testing.T, r *rig) *rig {
	t.Helper()
	p := &programs{workflows: t.TempDir(), signals: t.TempDir(), models: startModels(t), softStop: "5s"}
	p.models.replies["judge"], p.models.replies["editor"] = `{"holds": true}`, `{"name": "build", "sets": "built"}`
	r.programs = p
	planning := map[string]any{"model": "Plan", "completion": "editor", "corrections": 2}
	agents := map[string]any{interviewer: nil, moderator: nil, critic: planning}
	saying := func(agent, match string) any {
		return map[string]any{"type": "agent_text", "agent": agent, "match": map[string]any{"contains": match}}
	}
	triggers, builders, tools := []any{saying(interviewer, "NEXT")}, []string{}, []any{}
	for _, model := range []string{"judge", "editor"} {
		tools = append(tools, map[string]any{"name": model, "kind": "agent", "auto": false, "completion": map[string]any{
			"url": p.models.url + "/" + model, "model": "scripted", "allow_http": true, "allow_private": []string{"127.0.0.0/8"},
		}})
	}
	for _, effect := range effects {
		agents[architect+effect] = planning
		tools = append(tools, map[string]any{"name": "step_" + effect, "kind": "go", "agent": architect + effect, "effect": effect})
		triggers, builders = append(triggers, saying(architect+effect, "DONE")), append(builders, architect+effect)
	}
	rule := func(from any, to, condition string) any {
		return map[string]any{"from": from, "to": to, "condition": condition}
	}
	manifest, err := json.Marshal(map[string]any{
		"agents": agents, "tools": tools, "models": map[string]any{"Plan": map[string]any{"type": "object", "required": []string{"name"}}},
		"context": map[string]any{
			"first":  map[string]any{"type": "boolean", "default": false, "triggers": triggers},
			"second": map[string]any{"type": "boolean", "default": false, "triggers": triggers},
			"built":  map[string]any{"type": "boolean", "default": false},
		},
		"handoffs": map[string]any{"decider": "judge", "rules": []any{
			rule(interviewer, moderator, "${first} and ${second}"),
			rule(builders, critic, "${built}"),
			map[string]any{"from": builders, "to": interviewer},
			map[string]any{"from": critic, "to": interviewer},
			rule(moderator, critic, teamIsDone),
		}},
	})
	require.NoError(t, err)
	dir := filepath.Join(p.workflows, "Crash")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), manifest, 0o600))
	return r
}

// run runs a row for the tool of one effect.
func (w *messageRow) run(t *testing.T, effect string) {
	t.Helper()
	r := newMessages(t, newRig(t))
	if w.sweep > 0 {
		r.programs.sweep = w.sweep.String()
	}
	if w.people != nil {
		r.answeredBy(0, parksSoon, w.people...)
	}
	sent := w.shape(effect)
	first := r.start(w.fails)
	r.publishMessage(&sent)
	switch {
	case w.script != nil:
		w.script(r, first)
	case w.lives:
		require.False(t, r.wait(first, r.atRest()), "the worker died")
	default:
		r.dies(first)
	}
	for failpoint := range strings.SplitSeq(w.fails, ";") {
		point, _, ok := strings.Cut(failpoint, "=")
		if !ok {
			continue // the tool kills its worker
		}
		require.NotEmpty(t, r.struck(point), "the worker was not struck at %s", point)
	}
	if w.then != nil {
		w.then(r)
	}
	w.expect(t, r, r.settle(), effect)
}

// publishMessage publishes the message of a row. Its turn, if it makes one, is the turn of a row.
func (r *rig) publishMessage(sent *shape) {
	r.t.Helper()
	e := &events.AgentMessage{
		TurnID: events.TurnID{App: theTurn.App, Chat: theTurn.Chat}, ID: theTurn.Turn, Workflow: "Crash", Agent: sent.agent, Content: sent.content,
	}
	body, err := events.EncodeMessage(e, time.Now())
	require.NoError(r.t, err)
	_, err = r.js.Publish(r.t.Context(), r.space.In(subjects.DefaultPool, e.InboundKind(), e.App, e.Workflow, e.Chat), body)
	require.NoError(r.t, err)
	e, err = events.DecodeMessage(body) // as workers read it
	require.NoError(r.t, err)
	r.messages = append(r.messages, oneturntest.SentMessage{Event: *e, MayFail: true, At: time.Now()})
	if slices.Contains(sent.events, "turn.tool_call") {
		r.accepted = append(r.accepted, oneturntest.Accepted{App: theTurn.App, Chat: theTurn.Chat, Turn: theTurn.Turn, At: time.Now(), MayFail: true})
	}
}

// expect compares a message that is complete with the row.
func (w *messageRow) expect(t *testing.T, r *rig, facts *oneturntest.Facts, effect string) {
	t.Helper()
	want, code, entered := w.shape(effect), w.code, map[string]int{}
	if slices.Contains(want.sets, "built") {
		entered["build"] = max(1, w.ran)
		switch {
		case w.cut && reentered(effect):
			entered["build"] = w.ran + 1
		case w.cut:
			entered["build"], code = w.ran, events.CodeInterrupted
		}
		require.Equal(t, code, codeOf(t, facts, keyOfTurn(cmp.Or(want.turn, theTurn.Turn)).String()), "code of the turn")
		if code != "" { // the tool has not changed its variable
			want.sets, want.to = want.sets[:2], interviewer
		}
	}
	require.Equal(t, want.events, eventsOfMessage(facts), "events, each once and in order")
	require.Equal(t, entered["build"], r.entered(), "entries of the tool")
	require.Equal(t, want.to, nextSpeaker(t, facts))
	require.ElementsMatch(t, want.sets, r.trueVariables())
	if w.also != nil {
		w.also(t, r, facts)
	}
}

// keyOfMessage is the key of the message of a row.
func keyOfMessage() subjects.Key {
	return subjects.MessageKey(theTurn.App, theTurn.Chat, theTurn.Run, theTurn.Turn)
}

// eventsOfMessage are the live copies of a message, of the calls for it, and of its turn without its questions, in order.
func eventsOfMessage(facts *oneturntest.Facts) (list []string) {
	for _, c := range facts.Copies {
		k, _ := subjects.ParseKey(c.Key)
		name := k.Kind
		called := k.Kind == events.KindToolCall || k.Kind == events.KindToolResponse
		switch {
		case called && k.OfTurn() == keyOfTurn(theTurn.Turn):
			name = "turn." + name
		case called && k.OfTurn() == keyOfTurn(theTurn.Turn+"~1"):
			name = "turn~1." + name
		case k.OfTurn() != keyOfMessage():
			continue
		case k.Call != subjects.SingleCall:
			name = k.Call + "." + name
		}
		if k.ID != "" {
			name += "." + k.ID
		}
		list = append(list, name)
	}
	return list
}

// nextSpeaker is the agent in the handoff of a message.
func nextSpeaker(t *testing.T, facts *oneturntest.Facts) (to string) {
	t.Helper()
	for _, r := range facts.Journal {
		if r.Key == keyOfMessage().Public(events.RecordHandoff) {
			m, err := events.Parse(r.Data)
			require.NoError(t, err)
			var e events.Handoff
			require.NoError(t, m.As(&e))
			require.NotNil(t, e.To, "the handoff is undecided: %s", e.Message)
			to = *e.To
		}
	}
	return to
}

// trueVariables are the variables of the chat that a message or a tool has set.
func (r *rig) trueVariables() (names []string) {
	r.t.Helper()
	v, err := variables.New(r.t.Context(), r.js, r.space)
	require.NoError(r.t, err)
	values, err := v.Load(r.t.Context(), theTurn.App, theTurn.Chat, variables.Layers{})
	require.NoError(r.t, err)
	for name, value := range values {
		if value == true {
			names = append(names, name)
		}
	}
	return names
}

// TestMessagesWhoseWorkerDies runs every row of the table of messages in docs/guarantees.md: the first worker dies at a point, a clean
// one completes the message. Each event is stored once, in order.
func TestMessagesWhoseWorkerDies(t *testing.T) {
	t.Parallel()
	runMessages(t, messageRows())
}

func runMessages(t *testing.T, rows []messageRow) {
	t.Helper()
	for _, w := range rows {
		for _, effect := range w.effects() {
			t.Run(w.name+"/"+effect, func(t *testing.T) {
				t.Parallel()
				w.run(t, effect)
			})
		}
	}
}

// effects are the effects for which a row is run.
func (w *messageRow) effects() []string {
	if w.every {
		return stepEffects()
	}
	return []string{cmp.Or(w.effect, "unsafe")}
}
