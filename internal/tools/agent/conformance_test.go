package agent_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestAgentKeepsThePromisesOfAllTools(t *testing.T) {
	t.Parallel()
	l := scripted(t, function)
	conformance.Run(t, conformance.Kind{
		Name:      "agent",
		MaxOutput: 1 << 20,
		Invoker: func(function string) tools.Invoker {
			to := l.target()
			to.Completions.Model = function
			return tool(t, to, agent.Options{Output: json.RawMessage(`{}`), MaxAnswer: 1 << 20})
		},
		Cannot: map[string]string{
			"ask":      "a completion is one request: a model asks in its answer",
			"progress": "a completion comes immediately",
			"later":    "its endpoint only limits the rate",
			"nan":      "what the model has written wrongly is asked for again",
			"huge":     "numbers are bounded where the result is stored",
		},
	})
}

// function is a model that does what a function of the suite does.
func function(r *http.Request, a asked) sent {
	messages, _ := a.body["messages"].([]any)
	last, _ := messages[len(messages)-1].(map[string]any)
	args, _ := last["content"].(string)
	name, _ := a.body["model"].(string)
	number := func(name string) int { n, _ := strconv.Atoi(a.header.Get(name)); return n }
	token, _ := strconv.ParseUint(a.header.Get(target.HeaderFencingToken), 10, 64)
	value, err := conformance.Function(r.Context(), name, json.RawMessage(args), conformance.Host{
		Identity: conformance.Identity{
			IdempotencyKey: strings.ReplaceAll(a.header.Get(target.HeaderIdempotencyKey), "%20", " "), FencingToken: token,
			Epoch: number(target.HeaderEpoch), Attempt: number(target.HeaderAttempt), Depth: number(target.HeaderDepth),
		},
		Crash: func() { panic(http.ErrAbortHandler) },
	})
	var failed *events.Error
	switch {
	case err == nil:
		return sent{content: string(value), finish: "stop"}
	case tools.IsRetryable(err):
		return sent{status: http.StatusTooManyRequests, message: "slow down"}
	case errors.As(err, &failed) && failed.Code == events.CodeUserError:
		return sent{refusal: failed.Msg, finish: "stop"}
	case errors.As(err, &failed):
		return sent{status: http.StatusInternalServerError, message: failed.Msg}
	}
	panic(http.ErrAbortHandler)
}
