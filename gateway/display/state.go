package display

import (
	"encoding/json"
	"maps"

	"github.com/oneturn/oneturn/agui"
)

// State is the shared state that a client shows. It has no values of answers and no secrets.
type State struct {
	Turns   map[string]TurnState       `json:"turns"` // the newest, by tool_call_id
	Open    []string                   `json:"open"`  // tool_call_ids of open questions, in the order in which they were asked
	Context map[string]json.RawMessage `json:"context,omitempty"`
	Speaker string                     `json:"speaker,omitempty"` // the agent that speaks next
}

// TurnState is a turn in a [State].
type TurnState struct {
	Phase Phase  `json:"phase"`
	Agent string `json:"agent"`
	Tool  string `json:"tool"`
}

func (t *turn) state() TurnState { return TurnState{Phase: t.phase, Agent: t.agent, Tool: t.tool} }

// State returns the state.
func (c *Chat) State() State {
	s := State{Turns: make(map[string]TurnState, len(c.turns)), Open: c.open(), Speaker: c.speaker}
	for _, t := range c.turns {
		s.Turns[t.id] = t.state()
	}
	if len(c.context) > 0 {
		s.Context = maps.Clone(c.context)
	}
	return s
}

func (c *Chat) open() []string {
	ids := make([]string, 0, len(c.asking))
	for _, q := range c.asking {
		ids = append(ids, q.call.id)
	}
	return ids
}

// patch returns what a change does to the state, nil if nothing.
func (c *Chat) patch(change *Change) agui.Patch {
	switch change.kind {
	case turnStarted:
		p := agui.Patch{agui.Add(agui.Pointer("turns", change.turn.id), change.turn.state())}
		if change.name != "" {
			p = append(p, agui.Remove(agui.Pointer("turns", change.name)))
		}
		return p
	case phaseChanged:
		return agui.Patch{agui.Add(agui.Pointer("turns", change.turn.id), change.turn.state())}
	case openChanged:
		return agui.Patch{agui.Replace("/open", c.open())}
	case variableSet:
		if _, displayed := c.context[change.name]; !displayed {
			return nil
		}
		if len(c.context) == 1 {
			return agui.Patch{agui.Add("/context", map[string]json.RawMessage{change.name: c.context[change.name]})}
		}
		return agui.Patch{agui.Add(agui.Pointer("context", change.name), c.context[change.name])}
	case speakerChanged:
		if c.speaker == "" {
			return agui.Patch{agui.Remove("/speaker")}
		}
		return agui.Patch{agui.Add("/speaker", c.speaker)}
	default:
		return nil
	}
}
