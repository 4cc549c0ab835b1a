package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1" // the rules of encoding/json at a third of the cost

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tools"
)

// Outcome is the end of a call, in the terms of a tool_response.
type Outcome struct {
	Payload  json.RawMessage // the tool's result, or what describes the failure
	Status   string          // events.StatusOK or events.StatusError
	Success  bool            // status is ok and the result itself reports no failure
	Content  string          // for people
	Code     events.Code     // "" unless the status is error
	Attempts int             // attempts of the tool
	Duration time.Duration   // of all attempts, from when they are entered, and of the pauses between them
	Waited   time.Duration   // before they were entered, for example for a Python process
	Stood    time.Duration   // while the clock stood still, for people; no part of Duration

	Set    map[string]any // context variables that the tool set
	Remove []string       // context variables that the tool removed

	Stopped   error // cause, when the run was stopped before there was a result
	Entered   bool  // the tool ran or may run yet; false is certain
	Abandoned bool  // the tool has not returned; it may still run
	Err       error // what the tool failed with, for logs
}

// failed reports whether a result's `status` means failure though the tool returned.
// MozaiksAI knows the first two; a result that says a validation failed or was cancelled is
// no success either.
func failed(status string) bool {
	switch strings.ToLower(status) {
	case "error", "failed", "schema_validation_error", "cancelled":
		return true
	}
	return false
}

// outcome normalises what a tool returned (seed 000, "Success Determination").
func outcome(tool string, r tools.Result, err error) Outcome {
	if err != nil {
		return Failure(tool, err)
	}
	if len(r.Value) == 0 {
		r.Value = null()
	}
	o := Outcome{Payload: r.Value, Status: events.StatusOK, Success: true, Set: r.Set, Remove: r.Remove}
	said := peek(r.Value)
	if s, ok := said.status.(string); ok && failed(s) {
		o.Success = false
	}
	o.Content = events.Clip(said.content())
	if o.Content == "" && o.Success {
		o.Content = "Tool " + tool + " completed successfully."
	} else if o.Content == "" {
		o.Content = "Tool " + tool + " reported status ok."
	}
	return o
}

// Failure is the outcome of a call that ended with err.
func Failure(tool string, err error) Outcome {
	code, msg := events.CodeToolError, err.Error()
	var e *events.Error
	if errors.As(err, &e) && e != nil {
		if code = e.Code; !code.Known() { // a tool may make up its own; the wire knows a list
			code = events.CodeToolError
		}
		if e.Msg != "" {
			msg = e.Msg
		}
	}
	msg = events.Clip(msg)
	content := msg
	if strings.TrimSpace(content) == "" {
		content = "Tool " + tool + " reported status error."
	}
	payload, errJSON := json.Marshal(failure{Status: events.StatusError, Message: msg, Code: code})
	if errJSON != nil {
		payload = null()
	}
	return Outcome{Payload: payload, Status: events.StatusError, Content: content, Code: code, Err: err}
}

type failure struct {
	Status  string      `json:"status"`
	Message string      `json:"message"`
	Code    events.Code `json:"code"`
}

// said is what an object result says about itself.
type said struct {
	message, agentMessage, status any
}

func peek(value json.RawMessage) said {
	if len(value) == 0 || value[0] != '{' {
		return said{}
	}
	var v struct {
		Message      any `json:"message"`
		AgentMessage any `json:"agent_message"`
		Status       any `json:"status"`
	}
	if err := jsonv1.Unmarshal(value, &v); err != nil {
		return said{}
	}
	return said{v.Message, v.AgentMessage, v.Status}
}

// content is the first of message, agent_message and status that is truthy in Python's sense,
// if that is a text.
func (s said) content() string {
	for _, v := range []any{s.message, s.agentMessage, s.status} {
		switch v := v.(type) {
		case nil:
		case string:
			if v == "" {
				continue
			}
			if strings.TrimSpace(v) == "" {
				return ""
			}
			return v
		case bool:
			if v {
				return ""
			}
		case float64:
			if v != 0 {
				return ""
			}
		case []any:
			if len(v) > 0 {
				return ""
			}
		case map[string]any:
			if len(v) > 0 {
				return ""
			}
		}
	}
	return ""
}
