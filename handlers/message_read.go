package handlers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// Step 2 of a message: what is in its content. It is read once, before the claim, which stores the result.

// read returns the text of a message as it is stored, and the object in its content, nil if it has none.
func (h *Handlers) read(e *events.AgentMessage, agent *bindings.Agent) (*events.Text, any) {
	t := &events.Text{
		ID: e.ID, MessageID: e.ID, AppID: e.App, ChatID: e.Chat, RunID: e.Run, TurnSequence: e.TurnSequence,
		Agent: e.Agent, UserID: e.UserID, WorkflowName: e.Workflow, Content: e.Content, IsVisual: agent.Visual,
	}
	if agent.Unknown != "" {
		t.Warnings = append(t.Warnings, events.WarningUnknownAgent)
	}
	text, isText := e.Content.(string)
	if isText {
		effects := h.Bindings().Rules(agent.Workflow).Text(e.Agent, text)
		t.UIHidden = effects.Hidden
		for _, step := range effects.Steps {
			t.Changes = append(t.Changes, events.TextChange{Variable: step.Variable, From: step.From, Value: step.Value})
		}
	}
	if e.User || !agent.Structured() {
		return t, nil
	}
	t.Model = agent.ModelName
	found, err := extract(e, agent)
	t.Corrections = correctionsOf(agent, e, err)
	var unread *agentjson.Error
	switch {
	case err == nil:
		t.StructuredOutput = found.Object
		t.Repairs, t.Around, t.Warnings = texts(found.Repairs), texts(found.Around), append(t.Warnings, texts(found.Warnings)...)
		if agent.Tool != nil {
			t.Turn, t.Content = e.Turn, introduction(e.Agent, found.Object)
			return t, found.Object // its turn is checked like any other
		}
		t.Unread = misfitOutput(e.Agent, agent, found.Object)
		return t, found.Object
	case errors.As(err, &unread) && unread.Code == agentjson.NoJSON && len(t.Changes) > 0: // a token, such as NEXT
		t.Corrections = 0
		return t, nil
	}
	t.Unread = unreadOutput(e, agent, err)
	if agent.Tool != nil {
		t.Turn, t.UIHidden = e.Turn, true // its response reports the failure
	}
	return t, nil
}

// extract finds the object in the content of a message.
func extract(e *events.AgentMessage, agent *bindings.Agent) (agentjson.Found, error) {
	o := agentjson.Options{FinishReason: e.FinishReason}
	if agent.Model != nil {
		o.Fits = func(object map[string]any) bool {
			_, _, violations := agent.Model.Conform(object)
			return len(violations) == 0
		}
	}
	found, err := agentjson.ExtractValue(e.Content, o)
	if err == nil {
		err = checkExtent(found.Object)
	}
	return found, err
}

// checkExtent returns an error for an object that can be read, but is deeper or has more values than an event can hold.
func checkExtent(object map[string]any) error {
	switch depth, nodes := events.Extent(object); {
	case depth > events.MaxDataDepth:
		return &agentjson.Error{Code: agentjson.TooDeep, Message: fmt.Sprintf("nested more than %d deep: flatten the data", events.MaxDataDepth)}
	case nodes > events.MaxDataNodes:
		return &agentjson.Error{Code: agentjson.TooMany, Message: fmt.Sprintf("more than %d values: send less data", events.MaxDataNodes)}
	}
	return nil
}

// misfitOutput is the failure of an object that does not fit the model of its agent, nil if it does.
func misfitOutput(name string, agent *bindings.Agent, object map[string]any) *events.Rejection {
	_, _, violations := agent.Model.Conform(object)
	if len(violations) == 0 {
		return nil
	}
	return &events.Rejection{Content: misfit(name, agent.ModelName, violations), Payload: invalid(violations, model.Feedback(agent.ModelName, violations))}
}

// introduction is the text that frontends display in place of the JSON of an agent whose output calls a tool.
func introduction(agent string, object map[string]any) string {
	if text, ok := object["agent_message"].(string); ok && strings.TrimSpace(text) != "" {
		return strings.TrimSpace(text)
	}
	return agent + " prepared structured output."
}

// unreadOutput is the failure of a message without an object, with feedback for the model that wrote it.
func unreadOutput(e *events.AgentMessage, agent *bindings.Agent, err error) *events.Rejection {
	violation := model.Violation{Path: "/", Rule: "json", Expected: "one JSON object: " + events.LogText(err), GotType: "unreadable"}
	feedback := model.Feedback(agent.ModelName, []model.Violation{violation})
	var unread *agentjson.Error
	if errors.As(err, &unread) {
		violation.Expected, feedback = "one JSON object: "+unread.Message, unread.Feedback()
	}
	content := events.Clip(fmt.Sprintf("The output of agent %s cannot be read: %s.", e.Agent, events.LogText(err)))
	return &events.Rejection{Content: content, Payload: invalid([]model.Violation{violation}, feedback)}
}

func texts[T ~string](all []T) []string {
	if len(all) == 0 {
		return nil
	}
	list := make([]string, 0, len(all))
	for _, one := range all {
		list = append(list, string(one))
	}
	return list
}
