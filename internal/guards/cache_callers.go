package guards

import "github.com/oneturn/oneturn/internal/tools"

// Callers is a [Guard] that names what it distinguishes callers by. Any other guard may distinguish them
// by everything.
type Callers interface {
	Guard

	// Callers returns those names of the call, of its agent, workflow, user, chat and tenant, that
	// the guard looks at.
	Callers(call *tools.Call) []string
}

// CallerKeys returns what guards distinguish the caller of a call by. A call with other keys may not have
// the result of this one without asking the guards.
func CallerKeys(list []Guard, call *tools.Call) []string {
	var names []string
	for _, g := range list {
		if c, ok := g.(Callers); ok {
			names = append(names, c.Callers(call)...)
			continue
		}
		names = append(names, call.Agent, call.Workflow, call.UserID, call.Turn.Chat, call.Turn.App)
	}
	return names
}

// Callers implements [Callers].
func (a Allow) Callers(call *tools.Call) []string { return []string{call.Agent} }

// Callers implements [Callers]: only conditions look at more than the value.
func (d declared) Callers(call *tools.Call) []string {
	var names []string
	for _, c := range []check{d.input, d.output} {
		if c, ok := c.(*condition); ok {
			names = append(names, c.callers(call)...)
		}
	}
	return names
}

func (c *condition) callers(call *tools.Call) []string {
	var names []string
	for _, name := range c.names {
		switch name {
		case "agent":
			names = append(names, call.Agent)
		case "workflow":
			names = append(names, call.Workflow)
		case "user_id":
			names = append(names, call.UserID)
		case "chat_id":
			names = append(names, call.Turn.Chat)
		case "app_id":
			names = append(names, call.Turn.App)
		default:
		}
	}
	return names
}
