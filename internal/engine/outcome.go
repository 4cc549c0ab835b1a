package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1" // the rules of encoding/json at a third of the cost

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// How a result or an error becomes an outcome: success and [Failure] make one; classify and message give an error its
// code and its text on the wire; peek and content read what a result reports about itself, as MozaiksAI does.

// Outcome is the end of a call, in the terms of a tool_response.
type Outcome struct {
	ToolName string          // as the call names it
	Payload  json.RawMessage // the tool's result, or what describes the failure
	Status   string          // events.StatusOK or events.StatusError
	Success  bool            // status is ok and the result itself reports no failure
	Content  string          // for people
	Code     events.Code     // "" unless the status is error
	Message  string          // `user_error:<text>`, `tool_error:timeout`, …; "" unless the status is error
	Cached   bool            // the result comes from an earlier call
	Attempts int             // attempts of the tool, 0 if it was not tried
	Duration time.Duration   // of all attempts, from when they are entered, and of the pauses between them
	Waited   time.Duration   // for a limit, and before they were entered, for example for a Python process
	Paused   time.Duration   // while the clock was paused, for people; not part of Duration

	Set    map[string]any // context variables that the tool set
	Remove []string       // context variables that the tool removed

	Skill string // id of the skill that made the result, if its tool reports it outside of the payload; not of cached results

	// EffectState is what is known of the effect of a tool that was entered and has not failed by its own report: it has happened if
	// the tool has returned, also if its result is not used.
	EffectState events.EffectState

	Stopped   error // cause, when the run was stopped before there was a result
	Entered   bool  // the tool ran or may run yet; false is certain
	Abandoned bool  // the tool has not returned; it may still run
	Err       error // what the tool failed with, for logs
}

// failed reports whether a result's `status` means failure though the tool returned.
// MozaiksAI knows the first two; a result whose status is a failed validation or a cancel is not a
// success either.
func failed(status string) bool {
	switch strings.ToLower(status) {
	case "error", "failed", "schema_validation_error", "cancelled":
		return true
	}
	return false
}

// success is the outcome of a call whose tool has returned; see docs/mozaiksai.md.
func success(tool string, r tools.Result) Outcome {
	o := Outcome{Payload: r.Value, Status: events.StatusOK, Success: true, Set: r.Set, Remove: r.Remove, Skill: r.Skill}
	result := peek(r.Value)
	if s, ok := result.status.(string); ok && failed(s) {
		o.Success = false
	}
	o.Content = events.Clip(result.content())
	if o.Content == "" && o.Success {
		o.Content = "Tool " + tool + " completed successfully."
	} else if o.Content == "" {
		o.Content = "Tool " + tool + " reported status ok."
	}
	return o
}

// Failure is the outcome of a call that ended with err. Arguments that a [model.Refused] in its chain
// refuses come with all that is wrong with them.
func Failure(tool string, err error) Outcome {
	code, text := classify(err)
	o := Outcome{Status: events.StatusError, Content: text, Code: code, Message: message(code, text), Err: err}
	if strings.TrimSpace(text) == "" {
		o.Content = "Tool " + tool + " reported status error."
	}
	f := failure{Status: events.StatusError, Message: text, Code: code}
	if code == events.CodeBadArgs || code == events.CodeGuardrail || text == ownTimeout { // MozaiksAI has no text for them
		f.Message = o.Message
	}
	var refused *model.Refused
	if errors.As(err, &refused) && code == events.CodeBadArgs {
		f.Errors, f.Feedback = refused.Violations, model.Feedback(refused.Model, refused.Violations)
		words := model.Summary(refused.Violations)
		if more, ok := strings.CutPrefix(text, model.Reason(refused.Violations)); ok && more != "" {
			words += "." + more
		}
		o.Content = events.Clip("The arguments do not fit tool " + tool + ": " + words)
	}
	var errJSON error
	if o.Payload, errJSON = json.Marshal(&f); errJSON != nil {
		o.Payload = null()
	}
	return o
}

type failure struct {
	Status   string            `json:"status"`
	Message  string            `json:"message"`
	Code     events.Code       `json:"code"`
	Errors   []model.Violation `json:"errors,omitempty"`
	Feedback string            `json:"feedback,omitempty"`
}

// classify returns the code of a tool's error on the wire, and its text without the class that it may
// begin with.
func classify(err error) (events.Code, string) {
	code, text := events.CodeToolError, textOf(err)
	switch own := codeOf(err); {
	case isTimeout(err):
		code = events.CodeTimeout
	case own.Known(): // a tool may make up its own; the wire knows a list
		code = own
	}
	return code, events.Clip(strings.TrimPrefix(text, class(code)+":"))
}

// textOf is the text of an error for people: no operation, no code, no cause.
func textOf(err error) string {
	var e *events.Error
	if errors.As(err, &e) && e != nil && e.Msg != "" {
		return e.Msg
	}
	return err.Error()
}

func codeOf(err error) events.Code {
	var e *events.Error
	if errors.As(err, &e) && e != nil {
		return e.Code
	}
	return ""
}

// isTimeout reports whether an attempt, or what its tool waited for, ran out of time. An error
// that a tool marks retryable is not one, unless its code is.
func isTimeout(err error) bool {
	code := codeOf(err)
	return code == events.CodeTimeout || code == "" && errors.Is(err, context.DeadlineExceeded) && !tools.IsRetryable(err)
}

// ownTimeout is the text of the error of an attempt that the engine has ended.
const ownTimeout = "timeout"

// class is the class of errors that a code belongs to in messages.
func class(code events.Code) string {
	switch code {
	case events.CodeBadArgs, events.CodeUserError, events.CodeGuardrail, events.CodeUnknownTool:
		return string(code)
	case events.CodeValidationFailed: // arguments too, before they are a tool's
		return string(events.CodeBadArgs)
	default:
		return string(events.CodeToolError)
	}
}

// message is the error message: the class, and the text.
func message(code events.Code, text string) string {
	switch code {
	case events.CodeUnknownTool:
		return class(code)
	case events.CodeTimeout:
		return class(code) + ":" + ownTimeout
	default:
		return class(code) + ":" + text
	}
}

// resultStatus is what an object result reports about itself.
type resultStatus struct {
	message, agentMessage, status any
}

func peek(value json.RawMessage) resultStatus {
	if len(value) == 0 || value[0] != '{' {
		return resultStatus{}
	}
	var v struct {
		Message      any `json:"message"`
		AgentMessage any `json:"agent_message"`
		Status       any `json:"status"`
	}
	if err := jsonv1.Unmarshal(value, &v); err != nil {
		return resultStatus{}
	}
	return resultStatus{v.Message, v.AgentMessage, v.Status}
}

// content is the first of message, agent_message and status that is truthy in Python's sense,
// if that is a text.
func (s resultStatus) content() string {
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

// null returns the JSON value of a tool that returns nothing.
func null() json.RawMessage { return json.RawMessage("null") }
