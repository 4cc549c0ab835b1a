package agui

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
)

// What clients of CopilotKit expect of a runtime, next to runs: a list of agents, and all requests on one URL.

// Info is the reply to GET /info, by which clients find agents.
type Info struct {
	Version string // of the server
	Agents  map[string]AgentInfo
}

// AgentInfo is an agent. Its key in [Info] goes into URLs, partly without escaping: letters, digits, '_' and '-' are safe.
type AgentInfo struct {
	Name         string        `json:"name"`
	ClassName    string        `json:"className"`
	Description  string        `json:"description"`
	Capabilities *Capabilities `json:"capabilities,omitzero"`
}

// MarshalJSON writes the members that clients require: runs are streams (mode sse), and there is no transcription.
func (i Info) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(struct {
		Version string               `json:"version"`
		Mode    string               `json:"mode"`
		Audio   bool                 `json:"audioFileTranscriptionEnabled"`
		Agents  map[string]AgentInfo `json:"agents"`
	}{i.Version, "sse", false, i.Agents}, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("encode the info of the runtime: %w", err)
	}
	return b, nil
}

// Methods of a [RuntimeRequest]. Clients send others too, for features that a server need not have.
const (
	MethodInfo    = "info"
	MethodRun     = "agent/run"
	MethodConnect = "agent/connect"
	MethodStop    = "agent/stop"
)

// RuntimeRequest is a request of the transport that has one URL.
type RuntimeRequest struct {
	Method   string
	AgentID  string             // of run, connect and stop
	ThreadID string             // of stop
	Body     stdjson.RawMessage // what the other transport sends as the body: see [ReadInput] and [ReadStop]; nil if there is none
}

// ReadRuntimeRequest reads a request of the transport that has one URL. A request that it refuses is an *[InputError].
func ReadRuntimeRequest(r io.Reader, limits InputLimits) (*RuntimeRequest, error) {
	var envelope struct {
		Method string `json:"method"`
		Params struct {
			AgentID  string `json:"agentId"`
			ThreadID string `json:"threadId"`
		} `json:"params"`
		Body stdjson.RawMessage `json:"body"`
	}
	if err := readInto(r, limits, &envelope); err != nil {
		return nil, err
	}
	request := &RuntimeRequest{
		Method: envelope.Method, AgentID: envelope.Params.AgentID, ThreadID: envelope.Params.ThreadID, Body: present(envelope.Body),
	}
	switch request.Method {
	case "":
		return nil, missing("method", "info, agent/run, agent/connect or agent/stop; inputs without a method have the URL of their agent")
	case MethodRun, MethodConnect, MethodStop:
		if request.AgentID == "" {
			return nil, missing("params.agentId", "the name of an agent in the info")
		}
		if request.Method == MethodStop && request.ThreadID == "" {
			return nil, missing("params.threadId", "the thread to stop")
		}
	default:
	}
	return request, nil
}

// ReadStop reads the body of a request to stop a thread: the run to stop, or "" for any. The body may be empty.
func ReadStop(r io.Reader, limits InputLimits) (runID string, err error) {
	body := &bytes.Buffer{}
	if _, err := body.ReadFrom(io.LimitReader(r, 1)); err != nil {
		return "", fmt.Errorf("read the request: %w", err)
	}
	if body.Len() == 0 {
		return "", nil
	}
	var stop struct {
		RunID string `json:"runId"`
	}
	if err := readInto(io.MultiReader(body, r), limits, &stop); err != nil {
		return "", err
	}
	return stop.RunID, nil
}
