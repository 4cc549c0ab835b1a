package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// In this workflow each text with STEP moves the light on, from whatever it is, so that a message that is applied twice, or to a
// value that another message has replaced, is seen in the end.
const talk = `
agents: {Walker: , Builder: {model: Plan}}
models: {Plan: {type: object, required: [title]}}
tools: [{name: build, kind: go, agent: Builder, effect: unsafe}]
context:
  light:
    default: red
    source:
      type: state
      transitions:
      - {from: red, to: green, trigger: {type: agent_text, agent: Walker, match: {contains: STEP}}}
      - {from: green, to: amber, trigger: {type: agent_text, agent: Walker, match: {contains: STEP}}}
      - {from: amber, to: red, trigger: {type: agent_text, agent: Walker, match: {contains: STEP}}}
      - {from: red, to: green, trigger: {type: agent_text, agent: user, match: {contains: STEP}}}
      - {from: green, to: amber, trigger: {type: agent_text, agent: user, match: {contains: STEP}}}
      - {from: amber, to: red, trigger: {type: agent_text, agent: user, match: {contains: STEP}}}
handoffs: [{from: [Walker, Builder], to: user}]
`

// talker publishes messages of a chat over a separate connection.
type talker struct {
	*rig

	js jetstream.JetStream
}

// sends publishes a message, and records it for the checker.
func (s *talker) sends(agent, id, content string, change ...func(*events.AgentMessage)) {
	e := &events.AgentMessage{
		TurnID: events.TurnID{App: "app", Chat: "chat"}, ID: id, Workflow: "Talk", Agent: agent, Content: content, User: agent == events.AgentUser,
	}
	for _, f := range change {
		f(e)
	}
	body, err := events.EncodeMessage(e, time.Now())
	require.NoError(s, err)
	read, err := events.DecodeMessage(body) // as workers read it
	require.NoError(s, err)
	_, err = s.js.Publish(s.Context(), s.space.In(subjects.DefaultPool, e.InboundKind(), e.App, e.Workflow, e.Chat), body)
	require.NoError(s, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, oneturntest.SentMessage{Event: *read, At: time.Now()})
}

// builds returns the plan of a turn.
func builds(id string) string { return fmt.Sprintf(`{"title": %q}`, id) }

func TestMessagesOfOneChatOverFourConnectionsCountOnceEach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "Talk"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Talk", "oneturn.yaml"), []byte(talk), 0o600))
	build := oneturn.NewTool("build", func(ctx context.Context, _ map[string]any) (string, error) {
		if err := r.ledger.Enter(tool.Info(ctx)); err != nil {
			return "", err
		}
		return "built", r.ledger.Exit(tool.Info(ctx))
	}, oneturn.ToolOptions{})
	for range 2 {
		r.start(oneturn.Config{Workflows: folder, Tools: []oneturn.Tool{build}})
	}

	const each = 12
	inRun := func(n int) func(*events.AgentMessage) {
		return func(e *events.AgentMessage) { e.Run, e.TurnSequence = "run", int64(n) }
	}
	numbered := func(s *talker, n int) {
		s.sends("Walker", fmt.Sprintf("numbered-%d", n), fmt.Sprintf("STEP %d", n), inRun(n))
	}
	connections := []func(s *talker, n int){
		numbered,
		func(s *talker, n int) {
			s.sends("Walker", fmt.Sprintf("plain-%d", n), "STEP")
			s.sends("Builder", fmt.Sprintf("plan-%d", n), builds(fmt.Sprintf("plan-%d", n)))
		},
		func(s *talker, n int) {
			s.sends(events.AgentUser, fmt.Sprintf("user-%d", n), "STEP, please.")
			s.sends("Walker", fmt.Sprintf("contended-%d", n), "STEP one way")
		},
		func(s *talker, n int) { // what the others publish, in another order and by another way
			numbered(s, each+1-n)
			s.sends("Walker", fmt.Sprintf("plain-%d", each+1-n), "STEP")
			s.sends("Walker", fmt.Sprintf("contended-%d", n), "STEP another way")
			plan := &oneturn.Turn{
				TurnID: oneturn.TurnID{App: "app", Chat: "chat", Turn: fmt.Sprintf("plan-%d", n)}, Workflow: "Talk", Agent: "Builder", Model: "Plan",
				Data: map[string]any{"title": fmt.Sprintf("plan-%d", n)},
			}
			s.publish(plan, false)
		},
	}
	var all sync.WaitGroup
	begin := make(chan struct{})
	for _, publishes := range connections {
		js, err := jetstream.New(r.server.Connect())
		require.NoError(t, err)
		all.Go(func() {
			<-begin
			for n := range each {
				publishes(&talker{r, js}, n+1)
			}
		})
	}
	close(begin)
	all.Wait()
	r.expectSteps(r.settle(nil), each)
}

// expectSteps checks that each message was stored once, and that all but those out of order have moved the light on once.
func (r *rig) expectSteps(facts *oneturntest.Facts, each int) {
	r.Helper()
	n, steps, late := map[string]int{}, map[string]int{}, 0
	for _, c := range facts.Copies {
		k, _ := subjects.ParseKey(c.Key)
		n[k.Kind]++
		m, err := events.Parse(c.Data)
		require.NoError(r, err)
		switch k.Kind {
		case events.RecordContextUpdate:
			steps[fmt.Sprint(m.Data["value"])]++
		case events.RecordHandoff:
			if m.Data["code"] == "out_of_order" {
				late++
				require.NotEqual(r, fmt.Sprintf("numbered-%d", each), m.Data["message_id"], "the last message of the run is in order")
			}
		}
	}
	messages := 5 * each // numbered, plain, contended, of users, and those with a turn
	texts := n[events.RecordText]
	require.Equal(r, messages, texts, "texts")
	require.Equal(r, messages, n[events.RecordHandoff], "handoffs")
	require.Equal(r, each, n[events.KindToolCall], "turns")
	require.Equal(r, each, n[events.KindToolResponse], "responses")
	moved := messages - each - late
	require.Equal(r, map[string]int{"green": (moved + 2) / 3, "amber": (moved + 1) / 3, "red": moved / 3}, steps, "%d are late", late)

	v, err := variables.New(r.Context(), r.js, r.space)
	require.NoError(r, err)
	values, err := v.Load(r.Context(), "app", "chat", variables.Layers{})
	require.NoError(r, err)
	require.Equal(r, []string{"red", "green", "amber"}[moved%3], values["light"])
	conflicts := 0
	for _, d := range facts.Dead {
		if strings.Contains(d.Reason, "conflict") {
			conflicts++
		}
	}
	require.Equal(r, each, conflicts, "one of two contents of an id is stored, the other one is a dead letter")
	for i := range each {
		require.Equal(r, 1, r.entered(oneturn.TurnID{Chat: "chat", Turn: fmt.Sprintf("plan-%d", i+1)}))
	}
}
