package agui_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

func TestInfoHasWhatCopilotKitRequires(t *testing.T) {
	t.Parallel()
	yes := true
	b, err := json.Marshal(agui.Info{Version: "1", Agents: map[string]agui.AgentInfo{
		"Gate": {Name: "Gate", ClassName: "HttpAgent", Capabilities: &agui.Capabilities{HumanInTheLoop: &agui.HumanInTheLoopCapabilities{Interrupts: &yes}}},
	}})
	require.NoError(t, err)
	require.JSONEq(t, `{"version":"1","mode":"sse","audioFileTranscriptionEnabled":false,"agents":{"Gate":
		{"name":"Gate","className":"HttpAgent","description":"","capabilities":{"humanInTheLoop":{"interrupts":true}}}}}`, string(b))
	b, err = json.Marshal(agui.Info{})
	require.NoError(t, err)
	require.Contains(t, string(b), `"agents":{}`)
}

func TestRequestsOfTheOneURLAreRead(t *testing.T) {
	t.Parallel()
	request := func(s string) (*agui.RuntimeRequest, error) {
		return agui.ReadRuntimeRequest(strings.NewReader(s), agui.InputLimits{})
	}
	run, err := request(`{"method":"agent/run","params":{"agentId":"Gate"},"body":` + minimal + `}`)
	require.NoError(t, err)
	require.Equal(t, agui.MethodRun, run.Method)
	require.Equal(t, "Gate", run.AgentID)
	in, err := agui.ReadInput(bytes.NewReader(run.Body), agui.InputLimits{})
	require.NoError(t, err)
	require.Equal(t, "t", in.ThreadID)

	stop, err := request(`{"method":"agent/stop","params":{"agentId":"Gate","threadId":"t"},"body":{"runId":"r"}}`)
	require.NoError(t, err)
	require.Equal(t, "t", stop.ThreadID)
	runID, err := agui.ReadStop(bytes.NewReader(stop.Body), agui.InputLimits{})
	require.NoError(t, err)
	require.Equal(t, "r", runID)

	info, err := request(`{"method":"info","body":null}`)
	require.NoError(t, err)
	require.Equal(t, agui.MethodInfo, info.Method)
	require.Nil(t, info.Body)

	for input, field := range map[string]string{
		minimal:                  "method",
		`{"method":1}`:           "method",
		`{"method":"agent/run"}`: "params.agentId",
		`{"method":"agent/connect","params":{"agentId":7}}`:      "params.agentId",
		`{"method":"agent/stop","params":{"agentId":"Gate"}}`:    "params.threadId",
		`{"method":"info","params":[]}`:                          "params",
		`{"method":"info","params":{"agentId":"a","agentId":1}}`: "params.agentId",
	} {
		_, err := request(input)
		var refused *agui.InputError
		require.ErrorAs(t, err, &refused, input)
		require.Equal(t, field, refused.Field, input)
	}
}

func TestBodyOfAStopIsOptional(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{"": "", `{}`: "", `{"runId":null}`: "", `{"runId":"r","x":1}`: "r"} {
		runID, err := agui.ReadStop(strings.NewReader(input), agui.InputLimits{})
		require.NoError(t, err, input)
		require.Equal(t, want, runID, input)
	}
	for _, input := range []string{`x`, `[]`, `{"runId":1}`, ` `} {
		_, err := agui.ReadStop(strings.NewReader(input), agui.InputLimits{})
		require.ErrorAs(t, err, new(*agui.InputError), input)
	}
}
