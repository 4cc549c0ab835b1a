package query

import (
	"encoding/json"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// Approval is how the question whether a program may run was decided.
type Approval struct {
	State  ApprovalState `json:"state"`
	By     string        `json:"decided_by,omitempty"` // the user that answered, as of a question
	Reason string        `json:"reason,omitempty"`     // of a refusal
}

// ApprovalState is the state of an [Approval].
type ApprovalState string

// The states of an approval. It is answered if its answer cannot be read here.
const (
	Approved          ApprovalState = "approved"
	Refused           ApprovalState = "refused"
	ApprovalAnswered  ApprovalState = "answered"
	ApprovalExpired   ApprovalState = "expired"
	ApprovalCancelled ApprovalState = "cancelled"
)

// approvalOf returns how the question of a call that asks for approval was decided, nil while it is open.
func approvalOf(t *idempotency.Turn, c *idempotency.Call) *Approval {
	asked := c.Questions()
	if len(asked) == 0 {
		return nil
	}
	q := &asked[len(asked)-1]
	a := &Approval{}
	switch StateOf(t, q) {
	case api.Answered:
		a.State = ApprovalAnswered
	case api.Expired:
		a.State = ApprovalExpired
	case api.Cancelled, api.Closed: // closed by the end of its turn
		a.State = ApprovalCancelled
	case api.Open, api.Unreadable, api.NotAsked:
		return nil
	}
	if q.Ack != nil {
		var ack events.ToolCallAck
		if m, err := events.Parse(q.Ack.Data); err == nil && m.Kind == events.KindToolCallAck && m.As(&ack) == nil {
			a.By = ack.UserID
		}
	}
	var answer struct {
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	}
	if a.State != ApprovalAnswered || q.Answer == nil || json.Unmarshal(q.Answer.Data, &answer) != nil || answer.Approved == nil {
		return a
	}
	if a.State = Approved; !*answer.Approved {
		a.State, a.Reason = Refused, answer.Reason
	}
	return a
}
