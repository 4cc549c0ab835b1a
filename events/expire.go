package events

import (
	"strings"
	"time"
)

// Expire is the inbound event that ends the time to answer a question. Timers and operators send it.
// It grants nothing: a worker checks it against the stored question and the clock of its server.
type Expire struct {
	TurnID
	Workflow   string    // context.workflow_name, needed for the subject
	Pool       string    // that handles it, "" for the default pool
	Key        string    // journal key <app>.<chat>.<turn>.<call> of the call that asked
	Ask        string    // id of the question in it, see [AskID]
	ToolCallID string    // the [QuestionID], for logs
	ExpiresAt  time.Time // when, in milliseconds; zero when an operator asks
	Forced     bool      // an operator asks: before the time, too
}

// DecodeExpire decodes an expire event, in its envelope or bare. It needs chat_id, key and ask.
// It fails as [DecodeTurn] does.
func DecodeExpire(body []byte) (*Expire, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	return m.Expire()
}

// Expire is [DecodeExpire] for an opened message.
func (m *Message) Expire() (*Expire, error) {
	if err := m.want(KindExpire); err != nil {
		return nil, err
	}
	f := fields{data: m.Data, err: m.timestampErr}
	f.object("context")
	e := &Expire{
		TurnID:     f.turnID("turn", "turn_idempotency_key", "context.turn_idempotency_key"),
		Workflow:   strings.Clone(f.name("context.workflow_name", "workflow_name")),
		Pool:       strings.Clone(f.text("pool")),
		Key:        strings.Clone(f.text("key")),
		Ask:        strings.Clone(f.text("ask")),
		ToolCallID: strings.Clone(f.callID("tool_call_id")),
		Forced:     m.Data["forced"] == true,
	}
	at, err := parseTime("expires_at", m.Data["expires_at"])
	if err != nil {
		f.fail(err)
	}
	e.ExpiresAt = at
	f.require(e.Chat, "chat_id", "context.chat_id or chat_id")
	f.require(e.Key, "key", "key: <app>.<chat>.<turn>.<call> of the journal")
	f.require(e.Ask, "ask", "ask: the part of tool_call_id after the last '/'")
	if f.err != nil {
		return nil, f.err
	}
	return e, nil
}

// EncodeExpire writes an expire event in its envelope. It refuses what [DecodeExpire] would
// refuse.
func EncodeExpire(e *Expire, now time.Time) ([]byte, error) {
	w := newWriter(nil, KindExpire, 0)
	w.open("data")
	w.str("kind", KindExpire)
	w.optional("key", e.Key)
	w.optional("ask", e.Ask)
	w.optional("tool_call_id", e.ToolCallID)
	w.optional("turn", e.Turn)
	w.optional("run_id", e.Run)
	w.optional("pool", e.Pool)
	if !e.ExpiresAt.IsZero() {
		w.time("expires_at", e.ExpiresAt)
	}
	if e.Forced {
		w.boolean("forced", true)
	}
	w.context(e.TurnID, e.Workflow, "")
	w.close() // context
	w.close()
	body, err := w.finish(now)
	if err != nil {
		return nil, err
	}
	if _, err := DecodeExpire(body); err != nil {
		return nil, encodeError(CodeBadArgs, err.Error())
	}
	return body, nil
}
