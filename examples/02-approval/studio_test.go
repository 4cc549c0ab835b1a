//go:build unix

package approval_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// studio runs a tool of the folder, as it stands there, for a person who answers by a script.
type studio struct {
	t    *testing.T
	tool tools.Invoker
	desk oneturntest.Desk
	call tools.Call
}

func newStudio(t *testing.T, function, args string) *studio {
	t.Helper()
	s := &studio{t: t}
	pool := python.NewPool(python.Options{Root: "workflows", Size: 1, Env: []string{"STUDIO_LEDGER"}})
	t.Cleanup(func() { require.NoError(t, pool.Close(context.WithoutCancel(t.Context()))) })
	s.tool = pool.Tool("Studio", function+".py", function)
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(args), &tree))
	s.call = tools.Call{
		Turn: events.TurnID{App: "app", Chat: "studio", Turn: t.Name()}, CallID: t.Name(), Workflow: "Studio", Agent: "A", Name: function,
		Args: tree, Context: map[string]any{"chat_id": "studio", "workflow_name": "Studio"}, Attempt: 1, Host: &s.desk,
	}
	return s
}

// run calls the tool from its beginning, as a worker does when an answer has come.
func (s *studio) run() (tools.Result, error) {
	s.t.Helper()
	s.call.Epoch = s.desk.NewRun()
	return s.tool.Invoke(s.t.Context(), &s.call)
}

// parks runs the tool until it waits for a person, and returns the question.
func (s *studio) parks() tools.Question {
	s.t.Helper()
	_, err := s.run()
	require.ErrorIs(s.t, err, tool.ErrParked)
	asked := s.desk.Asked()
	last := asked[len(asked)-1]
	require.True(s.t, last.Open)
	require.Contains(s.t, string(last.Question.Payload), `"agent_message_id":"msg_`)
	return last.Question
}

// ends runs the tool to its end, and returns its result.
func (s *studio) ends() (map[string]any, tools.Result) {
	s.t.Helper()
	result, err := s.run()
	require.NoError(s.t, err)
	var value map[string]any
	require.NoError(s.t, json.Unmarshal(result.Value, &value))
	return value, result
}

// noted returns how often the tool has noted something in its ledger.
func (s *studio) noted(what string) int {
	s.t.Helper()
	text, err := os.ReadFile(os.Getenv("STUDIO_LEDGER"))
	require.NoError(s.t, err)
	return strings.Count(string(text), `"what": "`+what+`", "turn": "`+s.call.Turn.Turn+`"`)
}

const post = `{"title": "Spring sale", "body": "Everything must go.", "agent_message": "Please look."}`

func TestApprovalArtifactIsAnsweredThoughTheToolRunsAgain(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_approval", post)
	for range 2 {
		q := s.parks()
		require.Equal(t, "PostApproval artifact", q.Tool+" "+q.Display)
	}
	s.desk.Answer("PostApproval", map[string]any{"status": "approved"})
	value, result := s.ends()
	require.Equal(t, "success", value["status"])
	require.Equal(t, "published", result.Set["post_status"])
	require.Len(t, s.desk.Asked(), 1, "one question, whatever its random id")
	require.Equal(t, []int{3, 1}, []int{s.noted("asked for approval"), s.noted("published")})
}

func TestApprovalThatIsRefusedPublishesNothing(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_approval", post)
	s.desk.Answer("PostApproval", map[string]any{"status": "rejected", "comment": "too loud"})
	value, result := s.ends()
	require.Equal(t, "Spring sale stays a draft: too loud", value["message"])
	require.Equal(t, "rejected", result.Set["post_status"])
	require.Zero(t, s.noted("published"))
}

func TestApprovalThatNobodyGivesIsAnErrorOfTheTool(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_approval", post)
	s.desk.Expire("PostApproval")
	value, _ := s.ends()
	require.Equal(t, "error", value["status"])
}

func TestAPIKeyGoesNowhereButToTheTool(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_api_key", `{"service": "Stripe", "agent_message": "I need a key.", "chat_id": "studio", "workflow_name": "Studio"}`)
	require.Contains(t, string(s.parks().Payload), `"maskInput":true`)
	s.desk.Answer("AgentAPIKeyInput", map[string]any{"status": "submitted", "data": map[string]any{"apiKey": "sk-canary"}})
	value, result := s.ends()
	require.Equal(t, "Stripe is connected.", value["message"])
	require.Equal(t, []any{"stripe"}, result.Set["keys_ready"])
	require.NotContains(t, string(result.Value), "sk-canary")
}

func TestDiagramReviewLeadsToASecondQuestion(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "review_diagram", `{"title": "Checkout", "mermaid": "sequenceDiagram", "agent_message": "Is it so?"}`)
	require.Equal(t, "DiagramReview", s.parks().Tool)
	s.desk.Answer("DiagramReview", map[string]any{"status": "approved"})
	require.Equal(t, "SaveDiagram", s.parks().Tool)
	s.desk.Answer("SaveDiagram", map[string]any{"file": "checkout.mmd"})
	value, result := s.ends()
	require.Equal(t, "Checkout is saved as checkout.mmd.", value["message"])
	require.Equal(t, "saved", result.Set["diagram_status"])
	require.Equal(t, []int{3, 1}, []int{s.noted("showed the diagram"), s.noted("saved the diagram")})
	require.Len(t, s.desk.Reported(), 1)
}

func TestDiagramThatShallChangeLeadsToAnother(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "review_diagram", `{"title": "Checkout", "mermaid": "sequenceDiagram", "agent_message": "Is it so?"}`)
	s.desk.Answer("DiagramReview", map[string]any{"status": "request_changes"})
	require.Equal(t, "DiagramFeedback", s.parks().Tool)
	s.desk.Answer("DiagramFeedback", map[string]any{"text": "Add the refund."})
	value, _ := s.ends()
	require.Equal(t, "needs_changes", value["status"])
	require.Equal(t, "To change: Add the refund.", value["message"])
}
