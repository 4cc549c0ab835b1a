package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Events that a worker writes often, calls and responses, are written member by member with the writer of
// json_writer.go, without reflection. All others go through encoding/json and are then made canonical.

// ValidationFailure is the payload of a [ToolResponse] with code validation_failed.
type ValidationFailure struct {
	Errors   any    `json:"errors"`   // violations in a form that encoding/json can write
	Feedback string `json:"feedback"` // text for the model that produced the data
}

// timeFormat is RFC 3339 with milliseconds, for times in UTC.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// AppendToolCall appends what [Encode] writes to dst, without an allocation when there is room.
func AppendToolCall(dst []byte, e *ToolCall, now time.Time) ([]byte, error) {
	w := newWriter(dst, KindToolCall, sizeOf(e.Payload.ToolArgs))
	w.toolCall(KindToolCall, e)
	return w.finish(now)
}

// AppendToolResponse appends what [Encode] writes to dst, likewise.
func AppendToolResponse(dst []byte, e *ToolResponse, now time.Time) ([]byte, error) {
	w := newWriter(dst, KindToolResponse, sizeOf(e.Payload))
	w.toolResponse(KindToolResponse, e)
	return w.finish(now)
}

// Encode writes an event of the given kind in its envelope, with now in UTC as timestamp.
//
// data is a [ToolCall] or [ToolResponse] (or a pointer to one), which are written in one pass,
// or anything that encoding/json writes as an object, which is made canonical. Its `kind` is
// always the given one. Values inside follow the rules of [AppendJSON]; ToolCallPayload.ToolArgs
// and ToolResponse.Payload may also be a [Canonical], a [Blob] or a [ValidationFailure].
func Encode(kind string, data any, now time.Time) ([]byte, error) {
	var w writer
	switch d := data.(type) {
	case *ToolCall:
		w = newWriter(nil, kind, sizeOf(d.Payload.ToolArgs))
		w.toolCall(kind, d)
	case ToolCall:
		return Encode(kind, &d, now)
	case *ToolResponse:
		w = newWriter(nil, kind, sizeOf(d.Payload))
		w.toolResponse(kind, d)
	case ToolResponse:
		return Encode(kind, &d, now)
	default:
		w = newWriter(nil, kind, 0)
		w.other(kind, data)
	}
	return w.finish(now)
}

// EncodeTurn writes the structured_output_ready, plan_ready or retry event of t in its envelope: what a publisher
// sends. It refuses what [DecodeTurn] would refuse, so that a mistake shows where it is made.
func EncodeTurn(t *StructuredOutputReady, now time.Time) ([]byte, error) {
	w := newWriter(nil, t.InboundKind(), 0)
	w.open("data")
	w.str("kind", t.InboundKind())
	w.optional("agent", t.Agent)
	switch {
	case t.ResumeOf != "":
		w.retryOf(t.ResumeOf, t.Rerun)
	case t.Plan:
		w.value("plan", t.Data)
	default:
		w.optional("agent_name", t.Agent)
		w.optional("model_name", t.Model)
		w.value("structured_data", t.Data)
		w.boolean("auto_tool_mode", t.AutoToolMode)
	}
	w.optional("turn_idempotency_key", t.Turn)
	w.optional("run_id", t.Run)
	w.optional("correction_of", t.CorrectionOf)
	tenant := "app_id"
	if t.Enterprise {
		tenant = "enterprise_id"
	}
	w.contextOf(tenant, t.TurnID, t.Workflow, t.UserID)
	w.optionalInt("turn_sequence", t.TurnSequence)
	if t.ContextVariables != nil {
		w.value("context_variables", t.ContextVariables)
	}
	w.close() // context
	w.close()
	body, err := w.finish(now)
	if err != nil {
		return nil, err
	}
	if _, err := DecodeTurn(body); err != nil {
		return nil, fmt.Errorf("encode turn: %w", err)
	}
	return body, nil
}

// EncodeCancel writes the cancel event of c in its envelope. It refuses what [DecodeCancel]
// would refuse.
func EncodeCancel(c *Cancel, now time.Time) ([]byte, error) {
	w := newWriter(nil, KindCancel, 0)
	w.open("data")
	w.str("kind", KindCancel)
	if c.ToolCallID != "" { // which is more exact: a turn key may have been used again
		w.str("tool_call_id", c.ToolCallID)
	} else {
		w.optional("turn", c.Turn)
	}
	w.optional("run_id", c.Run)
	w.optional("reason", c.Reason)
	w.context(c.TurnID, c.Workflow, c.UserID)
	w.close() // context
	w.close()
	body, err := w.finish(now)
	if err != nil {
		return nil, err
	}
	if _, err := DecodeCancel(body); err != nil {
		return nil, fmt.Errorf("encode cancel: %w", err)
	}
	return body, nil
}

// context opens the context of an inbound event; the caller closes it.
func (w *writer) context(id TurnID, workflow, user string) { w.contextOf("app_id", id, workflow, user) }

// contextOf is context with the tenant under a separate name.
func (w *writer) contextOf(tenant string, id TurnID, workflow, user string) {
	w.open("context")
	w.str(tenant, id.tenant())
	w.optional("chat_id", id.Chat)
	w.optional("workflow_name", workflow)
	w.optional("user_id", user)
}

func (w *writer) toolCall(kind string, e *ToolCall) {
	w.open("data")
	w.str("kind", kind)
	w.str("id", e.ID)
	w.str("app_id", e.AppID)
	w.str("chat_id", e.ChatID)
	w.optional("run_id", e.RunID)
	w.str("turn", e.Turn)
	w.optionalInt("turn_sequence", e.TurnSequence)
	w.str("agent", e.Agent)
	w.str("tool_name", e.ToolName)
	w.str("tool_call_id", e.ToolCallID)
	w.str("call_id", e.CallID)
	w.str("corr", e.Corr)
	w.step(e.Program, e.Step, e.Depth)
	w.boolean("awaiting_response", e.AwaitingResponse)
	if e.ComponentType == nil {
		w.value("component_type", nil)
	} else {
		w.str("component_type", *e.ComponentType)
	}
	w.optional("display", e.Display)
	w.optional("display_type", e.DisplayType)
	w.str("interaction_type", e.InteractionType)
	w.str("workflow_name", e.WorkflowName)
	w.optional("user_id", e.UserID)
	w.optional("correction_of", e.CorrectionOf)
	if e.Correcting {
		w.boolean("correcting", true)
	}
	w.usage(e.Usage)
	w.retryOf(e.ResumeOf, e.Rerun)
	w.optional("effect", string(e.Effect))
	if e.Secret {
		w.boolean("secret", true)
	}
	if e.Answer != nil {
		w.answerTo(e.Answer)
	}
	if e.Rejected {
		w.boolean("rejected", true)
	}
	w.optional("code", string(e.Code))
	if e.Rejection != nil {
		w.open("rejection")
		w.str("content", e.Rejection.Content)
		w.value("payload", e.Rejection.Payload)
		w.close()
	}
	if e.Payload.Shown != nil {
		w.value("payload", shown(e))
		w.close()
		return
	}
	w.open("payload")
	w.value("tool_args", e.Payload.ToolArgs)
	w.str("agent_name", e.Payload.AgentName)
	w.str("interaction_type", e.Payload.InteractionType)
	w.str("workflow_name", e.Payload.WorkflowName)
	w.optional("display", e.Payload.Display)
	w.optional("mode", e.Payload.Mode)
	w.optional("agent_message", e.Payload.AgentMessage)
	w.close()
	w.close()
}

func (w *writer) toolResponse(kind string, e *ToolResponse) {
	w.open("data")
	w.str("kind", kind)
	w.str("id", e.ID)
	w.str("app_id", e.AppID)
	w.str("chat_id", e.ChatID)
	w.optional("run_id", e.RunID)
	w.str("turn", e.Turn)
	w.optionalInt("turn_sequence", e.TurnSequence)
	w.str("agent", e.Agent)
	w.str("tool_name", e.ToolName)
	w.str("tool_call_id", e.ToolCallID)
	w.str("call_id", e.CallID)
	w.str("corr", e.Corr)
	w.step(e.Program, e.Step, e.Depth)
	w.str("status", e.Status)
	w.boolean("success", e.Success)
	w.str("content", e.Content)
	w.str("interaction_type", e.InteractionType)
	w.str("workflow_name", e.WorkflowName)
	w.value("payload", e.Payload)
	w.optional("code", string(e.Code))
	if e.Code != "" {
		w.optional("effect_state", string(e.EffectState))
	}
	w.integer("attempts", int64(e.Attempts))
	w.integer("duration_ms", e.DurationMS)
	if len(e.ContextKeys) > 0 {
		keys := make([]any, len(e.ContextKeys))
		for i, k := range e.ContextKeys {
			keys[i] = k
		}
		w.value("context_keys", keys)
	}
	w.optional("artifact_id", e.ArtifactID)
	w.optional("skill_id", e.SkillID)
	if e.Correcting {
		w.boolean("correcting", true)
	}
	w.usage(e.Usage)
	w.close()
}

// step writes where in a program a call is; a turn that is not a program has none of it.
func (w *writer) step(program, step string, depth int) {
	w.optional("program", program)
	w.optional("step", step)
	w.optionalInt("depth", int64(depth))
}

// other writes an event that has no dedicated writer.
func (w *writer) other(kind string, data any) {
	m, ok := data.(map[string]any)
	if ok {
		m = maps.Clone(m)
	} else {
		m = w.objectOf(data)
	}
	if w.err != nil {
		return
	}
	if m == nil {
		m = map[string]any{}
	}
	m["kind"] = kind
	w.value("data", m)
}

// objectOf turns a Go value into a fresh tree by way of its JSON.
func (w *writer) objectOf(data any) map[string]any {
	raw, err := json.Marshal(data)
	if err != nil {
		w.fail(&Error{Code: CodeBadArgs, Op: opEncode, Msg: fmt.Sprintf("%T", data), Err: err})
		return nil
	}
	tree, err := Decode(raw)
	if err != nil {
		w.fail(&Error{Code: CodeBadArgs, Op: opEncode, Msg: fmt.Sprintf("%T", data), Err: err})
		return nil
	}
	m, ok := tree.(map[string]any)
	if !ok {
		w.fail(encodeError(CodeBadArgs, fmt.Sprintf("data of an event is %s: expected an object", typeName(tree))))
	}
	return m
}
