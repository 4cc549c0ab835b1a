//go:build unix

package approval_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// studio runs a tool of the workflow folder for a person who answers by a script.
type studio struct {
	t    *testing.T
	tool oneturntest.PythonTool
	args map[string]any
	host oneturntest.Host
}

func newStudio(t *testing.T, function, args string) *studio {
	t.Helper()
	s := &studio{
		t:    t,
		tool: oneturntest.PythonTool{Root: "workflows", Workflow: "Studio", File: function + ".py", Function: function, Env: []string{"STUDIO_LEDGER"}},
		host: oneturntest.Host{Turn: t.Name(), Variables: map[string]any{"chat_id": "studio", "workflow_name": "Studio"}},
	}
	require.NoError(t, json.Unmarshal([]byte(args), &s.args))
	return s
}

// run calls the tool from its beginning, as a worker does when an answer was given.
func (s *studio) run() (json.RawMessage, error) {
	s.t.Helper()
	return oneturntest.CallPython(s.t.Context(), &s.host, s.tool, s.args)
}

// parks runs the tool until it waits for a person, and returns the question.
func (s *studio) parks() oneturntest.Asked {
	s.t.Helper()
	_, err := s.run()
	require.ErrorIs(s.t, err, tool.ErrParked)
	asked := s.host.Asked()
	last := asked[len(asked)-1]
	require.True(s.t, last.Open)
	require.Contains(s.t, string(last.Payload), `"agent_message_id":"msg_`)
	return last
}

// ends runs the tool to its end, and returns its result as a value and as text.
func (s *studio) ends() (map[string]any, string) {
	s.t.Helper()
	result, err := s.run()
	require.NoError(s.t, err)
	var value map[string]any
	require.NoError(s.t, json.Unmarshal(result, &value))
	return value, string(result)
}

// noted returns how often the tool wrote an entry to its ledger.
func (s *studio) noted(what string) int {
	s.t.Helper()
	text, err := os.ReadFile(os.Getenv("STUDIO_LEDGER"))
	require.NoError(s.t, err)
	return strings.Count(string(text), `"what": "`+what+`", "turn": "`+s.host.Turn+`"`)
}

const post = `{"title": "Spring sale", "body": "Everything must go.", "agent_message": "Please look."}`

func TestApprovalArtifactIsAnsweredThoughTheToolRunsAgain(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_approval", post)
	for range 2 {
		q := s.parks()
		require.Equal(t, "PostApproval artifact", q.Tool+" "+q.Display)
	}
	s.host.Answer("PostApproval", map[string]any{"status": "approved"})
	value, _ := s.ends()
	require.Equal(t, "success", value["status"])
	require.Equal(t, "published", s.host.Variables["post_status"])
	require.Len(t, s.host.Asked(), 1, "one question, whatever its random id")
	require.Equal(t, []int{3, 1}, []int{s.noted("asked for approval"), s.noted("published")})
}

func TestApprovalThatIsRefusedPublishesNothing(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_approval", post)
	s.host.Answer("PostApproval", map[string]any{"status": "rejected", "comment": "too loud"})
	value, _ := s.ends()
	require.Equal(t, "Spring sale stays a draft: too loud", value["message"])
	require.Equal(t, "rejected", s.host.Variables["post_status"])
	require.Zero(t, s.noted("published"))
}

func TestExpiredApprovalIsAnErrorOfTheTool(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_approval", post)
	s.host.Expire("PostApproval")
	value, _ := s.ends()
	require.Equal(t, "error", value["status"])
}

func TestAPIKeyIsNotPartOfTheResult(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "request_api_key", `{"service": "Stripe", "agent_message": "I need a key.", "chat_id": "studio", "workflow_name": "Studio"}`)
	require.Contains(t, string(s.parks().Payload), `"maskInput":true`)
	s.host.Answer("AgentAPIKeyInput", map[string]any{"status": "submitted", "data": map[string]any{"apiKey": "sk-canary"}})
	value, result := s.ends()
	require.Equal(t, "Stripe is connected.", value["message"])
	require.Equal(t, []any{"stripe"}, s.host.Variables["keys_ready"])
	require.NotContains(t, result, "sk-canary")
}

func TestDiagramReviewLeadsToASecondQuestion(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "review_diagram", `{"title": "Checkout", "mermaid": "sequenceDiagram", "agent_message": "Is it so?"}`)
	require.Equal(t, "DiagramReview", s.parks().Tool)
	s.host.Answer("DiagramReview", map[string]any{"status": "approved"})
	require.Equal(t, "SaveDiagram", s.parks().Tool)
	s.host.Answer("SaveDiagram", map[string]any{"file": "checkout.mmd"})
	value, _ := s.ends()
	require.Equal(t, "Checkout is saved as checkout.mmd.", value["message"])
	require.Equal(t, "saved", s.host.Variables["diagram_status"])
	require.Equal(t, []int{3, 1}, []int{s.noted("showed the diagram"), s.noted("saved the diagram")})
	require.Len(t, s.host.Reported(), 1)
}

func TestRequestedChangesLeadToAQuestionForThem(t *testing.T) {
	t.Parallel()
	s := newStudio(t, "review_diagram", `{"title": "Checkout", "mermaid": "sequenceDiagram", "agent_message": "Is it so?"}`)
	s.host.Answer("DiagramReview", map[string]any{"status": "request_changes"})
	require.Equal(t, "DiagramFeedback", s.parks().Tool)
	s.host.Answer("DiagramFeedback", map[string]any{"text": "Add the refund."})
	value, _ := s.ends()
	require.Equal(t, "needs_changes", value["status"])
	require.Equal(t, "To change: Add the refund.", value["message"])
}
