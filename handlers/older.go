package handlers

import (
	"github.com/oneturn/oneturn/events"
)

// olderNames tells the end of a question by the names that it had before: for frontends of
// workflows with compat.events. Nobody's screen depends on it, so it is published once, and not
// stored.
func (h *Handlers) olderNames(q *inquiry, value any) {
	if !h.Bindings().CompatEvents(q.WorkflowName) {
		return
	}
	kind, event := events.KindUIToolDismiss, any(&events.UIToolDismiss{
		Kind: events.KindUIToolDismiss, AppID: q.AppID, ChatID: q.ChatID, EventID: q.ToolCallID, UIToolID: q.ToolName,
	})
	if q.Display == events.DisplayInline || q.Display == events.DisplayComposer {
		kind, event = events.KindUIToolComplete, &events.UIToolComplete{
			Kind: events.KindUIToolComplete, AppID: q.AppID, ChatID: q.ChatID, EventID: q.ToolCallID, UIToolID: q.ToolName,
			Display: q.Display, Status: statusOf(q, value),
		}
	}
	data, err := events.Encode(kind, event, h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(q.AppID, q.ChatID, kind), data)
	}
	if err != nil {
		h.Logger.Debug("an older event could not be published", "kind", kind, "question", q.ToolCallID, "err", events.LogText(err))
	}
}

// statusOf returns the status that an answer gives itself, "completed" if it gives none. It is a
// word that a component chose; a text, or anything of a secret answer, is not repeated.
func statusOf(q *inquiry, value any) string {
	const word = 32 // bytes
	object, _ := value.(map[string]any)
	if status, ok := object["status"].(string); ok && status != "" && len(status) <= word && !q.Secret {
		return status
	}
	return "completed"
}
