package events

import (
	"strings"
	"time"
)

// A resume names a turn by its ids, or by its journal key where the ids do not lead to it. It carries no data: the
// journal has the turn.

// Resume is the inbound event that asks a worker to end a turn whose message is gone. Sweeps and
// operators send it. It grants nothing: a worker reads the journal and treats the turn as one whose
// worker was lost, or does nothing. See docs/journal.md.
type Resume struct {
	TurnID
	Workflow string // context.workflow_name, needed for the subject; "" when it is not known
	// Key is the journal key <app>.<chat>.<turn>.<call> of a turn that its ids do not lead to:
	// one whose turn key was used again, or whose claim cannot be read. "" for all others.
	Key string
	// Message means that Key is the one of a message of an agent or a user: what follows from it is not complete.
	Message bool
}

// DecodeResume decodes a resume event, in its envelope or bare. The turn is named by `chat_id`
// and `turn` (also `turn_idempotency_key`), or by `key` alone. It fails as
// [DecodeTurn] does.
func DecodeResume(body []byte) (*Resume, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	return m.Resume()
}

// Resume is [DecodeResume] for an opened message.
func (m *Message) Resume() (*Resume, error) {
	if err := m.want(KindResume); err != nil {
		return nil, err
	}
	f := fields{data: m.Data, err: m.timestampErr}
	f.object("context")
	r := &Resume{
		TurnID:   f.turnID("turn", "turn_idempotency_key", "context.turn_idempotency_key"),
		Workflow: strings.Clone(f.name("context.workflow_name", "workflow_name")),
		Key:      strings.Clone(f.text("key")),
		Message:  m.Data["message"] == true,
	}
	if r.Key == "" {
		f.require(r.Chat, "chat_id", "context.chat_id or chat_id, or send key")
		f.require(r.Turn, "turn", "turn or turn_idempotency_key, or send key")
	}
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

// EncodeResume writes the resume event of r in its envelope. It refuses what [DecodeResume]
// would refuse.
func EncodeResume(r *Resume, now time.Time) ([]byte, error) {
	data := map[string]any{}
	optional := func(m map[string]any, name, value string) {
		if value != "" {
			m[name] = value
		}
	}
	context := map[string]any{"app_id": r.tenant()}
	optional(context, "chat_id", r.Chat)
	optional(context, "workflow_name", r.Workflow)
	data["context"] = context
	optional(data, "run_id", r.Run)
	optional(data, "turn", r.Turn)
	optional(data, "key", r.Key)
	if r.Message {
		data["message"] = true
	}
	body, err := Encode(KindResume, data, now)
	if err != nil {
		return nil, err
	}
	if _, err := DecodeResume(body); err != nil {
		return nil, encodeError(CodeBadArgs, err.Error())
	}
	return body, nil
}

// WithRun returns an event that starts a turn with another run id and otherwise as it is,
// which makes it a separate turn. Operators use it to run an event whose turn key was used
// before with other data. The result is canonical JSON.
func WithRun(body []byte, run string) ([]byte, error) {
	if run == "" {
		return nil, encodeError(CodeBadArgs, "the new run id is empty: name one")
	}
	if err := checkID("run_id", run); err != nil {
		return nil, err
	}
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	if m.Kind == KindRetry {
		return nil, encodeError(CodeBadArgs, "a retry belongs to the run of the turn that it retries: send it with another turn key")
	}
	if m.Kind != "" && !TurnKind(m.Kind) {
		return nil, m.wrongKind(KindStructuredOutputReady)
	}
	tree, err := Decode(body)
	if err != nil {
		return nil, err
	}
	top, _ := tree.(map[string]any)
	data := top
	if inner, ok := top["data"].(map[string]any); ok && top["type"] != nil {
		data = inner
	}
	data["run_id"] = run
	return AppendJSON(nil, top)
}
