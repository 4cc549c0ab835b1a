package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// withHost calls a tool in the next run of a turn.
func withHost(t *testing.T, tool tools.Invoker, host *memhost.Host) (string, error) {
	t.Helper()
	call := newCall(t, "tool", `{}`)
	call.Host, call.Epoch = host, host.NewRun()
	result, err := tool.Invoke(t.Context(), call)
	return string(result.Value), err
}

// action adds a tool that asks and returns what was done with the question.
func action(s scripted, mode string, p *mcp.ElicitParams) *target.MCP {
	return s.tool(anyObject, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var answer *mcp.ElicitResult
		var err error
		if mode == legacy {
			answer, err = req.Session.Elicit(ctx, p)
		} else {
			var ok bool
			if answer, ok = req.Params.InputResponses["q"].(*mcp.ElicitResult); !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": p}}, nil
			}
		}
		if err != nil {
			return nil, err
		}
		return structured(map[string]any{"action": answer.Action, "content": answer.Content})
	})
}

func TestFormIsAnsweredDeclinedOrCancelled(t *testing.T) {
	t.Parallel()
	for mode, question := range map[string]string{modern: "q", legacy: "1"} {
		for want, act := range map[string]func(*memhost.Host){
			`{"action":"accept","content":{"color":"blue"}}`: func(d *memhost.Host) { d.Answer(question, map[string]any{"color": "blue"}) },
			`{"action":"decline","content":null}`:            func(d *memhost.Host) { d.Answer(question, nil) },
			`{"action":"cancel","content":null}`:             func(d *memhost.Host) { d.Expire(question) },
		} {
			s := newScripted(t, mode, nil)
			tool := opened(t, action(s, mode, form()), mcptool.Options{})
			host := &memhost.Host{}
			act(host)
			got, err := withHost(t, tool, host)
			require.NoError(t, err)
			require.JSONEq(t, want, got)
			q := host.Asked()[0].Question
			require.JSONEq(t, `{"component_type":"Elicitation","mode":"form","message":"Which color?"}`, string(q.Payload))
			require.JSONEq(t, `{"type":["object","null"],"properties":{"color":{"type":"string"}},"required":["color"]}`, string(q.Schema))
		}
	}
}

func TestPageToVisitIsShownAndNeverFetched(t *testing.T) {
	t.Parallel()
	for mode, question := range map[string]string{modern: "q", legacy: "1"} {
		s := newScripted(t, mode, nil)
		tool := opened(t, action(s, mode, &mcp.ElicitParams{
			Mode: "url", Message: "Sign in", URL: "http://127.0.0.1:1/sign-in", ElicitationID: "e1",
		}), mcptool.Options{})
		for answer, want := range map[bool]string{true: "accept", false: "decline"} {
			host := &memhost.Host{}
			host.Answer(question, answer)
			got, err := withHost(t, tool, host)
			require.NoError(t, err)
			require.JSONEq(t, fmt.Sprintf(`{"action":%q,"content":null}`, want), got)
			require.Contains(t, string(host.Asked()[0].Question.Payload), `"url":"http://127.0.0.1:1/sign-in"`)
		}
	}
}

// TestCallIsFinishedByAnotherWorkerWithTheStateOfTheServer asks twice, and parks each time: every run has separate sessions, as workers do.
func TestCallIsFinishedByAnotherWorkerWithTheStateOfTheServer(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	var calls []string // the state that each call brought
	to := s.tool(anyObject, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		calls = append(calls, req.Params.RequestState)
		answer, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult)
		switch {
		case !ok:
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form(), "also": form()}, RequestState: "one"}, nil
		case req.Params.RequestState == "one":
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{"q": form()}, RequestState: "two " + fmt.Sprint(answer.Content["color"]),
			}, nil
		}
		return structured(map[string]any{"state": req.Params.RequestState, "color": answer.Content["color"]})
	})
	host := &memhost.Host{}
	run := func() (string, error) { return withHost(t, opened(t, to, mcptool.Options{}), host) }
	parked := func(asked int) {
		_, err := run()
		require.ErrorIs(t, err, tools.ErrParked)
		require.Len(t, host.Asked(), asked)
	}
	parked(1)
	host.Answer("also", nil)
	parked(2)
	host.Answer("q", map[string]any{"color": "blue"})
	parked(3)
	require.Equal(t, []string{"", "one"}, calls, "what was asked is not asked for again")
	host.Answer("2/q", map[string]any{"color": "green"})
	got, err := run()
	require.NoError(t, err)
	require.JSONEq(t, `{"state":"two blue","color":"green"}`, got)
	require.Equal(t, []string{"", "one", "two blue"}, calls)
}

func TestAnswerDoesNotGoToAToolThatHasChangedSinceItAsked(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	calls := 0
	do := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		calls++
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form()}, RequestState: "one"}, nil
	}
	host := &memhost.Host{}
	_, err := withHost(t, opened(t, s.tool(anyObject, do), mcptool.Options{}), host)
	require.ErrorIs(t, err, tools.ErrParked)
	host.Answer("q", map[string]any{"color": "blue"})
	_, err = withHost(t, opened(t, s.tool(`{"type":"object","properties":{"all":{"type":"boolean","default":true}}}`, do), mcptool.Options{}), host)
	require.ErrorContains(t, err, "has changed the tool since it asked")
	require.Equal(t, events.CodeToolError, events.CodeOf(err))
	require.False(t, tools.IsRetryable(err))
	require.Equal(t, 1, calls)
}

func TestWhatIsNotOfferedFailsTheCall(t *testing.T) {
	t.Parallel()
	many := mcp.InputRequestMap{}
	for i := range 100 {
		many[strconv.Itoa(i)] = form()
	}
	for text, asked := range map[string]mcp.InputRequestMap{
		"not offered":                      {"model": &mcp.CreateMessageWithToolsParams{}}, //nolint:staticcheck // servers may ask for it yet
		"asks too many questions":          many,
		"an invalid schema for the answer": {"q": &mcp.ElicitParams{Mode: "form", RequestedSchema: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)}},
	} {
		s := newScripted(t, modern, nil)
		to := s.tool(anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{InputRequests: asked}, nil
		})
		_, err := withHost(t, opened(t, to, mcptool.Options{}), &memhost.Host{})
		require.Equal(t, events.CodeToolError, events.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, text)
		require.False(t, tools.IsRetryable(err))
	}
}

func TestServerThatHasNoRoomIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	to := s.tool(anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}}, nil
	})
	_, err := withHost(t, opened(t, to, mcptool.Options{}), &memhost.Host{})
	require.True(t, tools.IsRetryable(err), "%v", err)
}

// TestCallThatWaitsForAPersonTakesNoRoom has one session for all calls.
func TestCallThatWaitsForAPersonTakesNoRoom(t *testing.T) {
	t.Parallel()
	servers := mcptool.NewServers(options())
	to := stdio(t, legacy, 1)
	ask := opened(t, &target.MCP{Server: to, Tool: "ask"}, mcptool.Options{Servers: servers})
	echo := opened(t, &target.MCP{Server: to, Tool: "echo"}, mcptool.Options{Servers: servers})
	asking := &slowHost{asked: make(chan struct{}), answer: make(chan struct{})}
	done := make(chan error, 1)
	call := newCall(t, "ask", `{}`)
	call.Host = asking
	go func() {
		result, err := ask.Invoke(t.Context(), call)
		if err == nil && string(result.Value) != `{"color":"red"}` {
			err = fmt.Errorf("it returned %s", result.Value)
		}
		done <- err
	}()
	<-asking.asked
	require.Equal(t, `{}`, value(t, echo, `{}`))
	close(asking.answer)
	require.NoError(t, <-done)
	require.Equal(t, `{}`, value(t, echo, `{}`))
	require.Equal(t, 1, servers.Stats().Sessions)
}

// slowHost answers when the test lets it.
type slowHost struct {
	memhost.Host

	asked, answer chan struct{}
}

func (d *slowHost) Ask(ctx context.Context, _ tools.Question) (tools.Answer, error) {
	close(d.asked)
	select {
	case <-d.answer:
		return tools.Answer{Value: json.RawMessage(`{"color":"red"}`)}, nil
	case <-ctx.Done():
		return tools.Answer{}, context.Cause(ctx)
	}
}
