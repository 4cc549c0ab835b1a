package oneturn

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// Turn is what a producer publishes: an agent has finished with JSON that calls for a tool.
// For publishing, Data and ContextVariables may be any values that encoding/json can write.
type Turn = events.StructuredOutputReady

// TurnID is the identity of a turn: tenant, chat, run, turn key.
type TurnID = events.TurnID

// Response is the end of a turn.
type Response = events.ToolResponse

// plain returns a copy of a turn whose data is what a worker will decode: any Go value is
// taken as encoding/json writes it.
func plain(t *Turn) (*Turn, error) {
	copied := *t
	copied.AutoToolMode = true
	copied.Workflow, copied.Agent, copied.Model = events.Name(t.Workflow), events.Name(t.Agent), events.Name(t.Model)
	var err error
	if copied.Data, err = tree(t.Data); err != nil {
		return nil, fmt.Errorf("publish turn %.80q: its data has no JSON form: %w", t.Turn, err)
	}
	if t.ContextVariables == nil {
		return &copied, nil
	}
	vars, err := tree(t.ContextVariables)
	if err != nil {
		return nil, fmt.Errorf("publish turn %.80q: its context variables have no JSON form: %w", t.Turn, err)
	}
	copied.ContextVariables, _ = vars.(map[string]any)
	return &copied, nil
}

func tree(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the value
	}
	return events.Decode(data)
}

func tenant(id TurnID) string {
	if id.App == "" {
		return events.DefaultApp
	}
	return id.App
}

func parseResponse(body []byte) (*Response, error) {
	m, err := events.Parse(body)
	if err != nil {
		return nil, err
	}
	if m.Kind != events.KindToolResponse {
		return nil, fmt.Errorf("it is of kind %.80q", m.Kind)
	}
	var r Response
	if err := m.As(&r); err != nil {
		return nil, err
	}
	return &r, nil
}
