package tool

import (
	"context"

	"github.com/oneturn/oneturn/internal/tools"
)

// CallInfo identifies a call of a tool and its run.
type CallInfo struct {
	App            string // tenant of the turn
	Chat           string // chat of the turn
	Run            string // run of the workflow, "" if it has none
	Turn           string // turn within the chat
	CallID         string // equals tool_call_id of the call's event
	Workflow       string // workflow name
	Agent          string // agent whose output calls the tool
	UserID         string // user of the chat, "" when unknown
	Tool           string // name of the tool
	IdempotencyKey string // the same in every run of this call
	FencingToken   uint64 // grows with each owner of the turn
	Epoch          int    // 1 for the first owner of the turn, one more for each takeover
	Attempt        int    // 1 for the first attempt of this run
	Trace          string // W3C traceparent of the turn, "" if it has none
	// Depth is the number of programs that the call is in: the ones that have published its turn as well. oneturn.Client
	// passes it on with turns that the tool publishes.
	Depth int
}

// Info returns the call that ctx belongs to. Outside a tool it returns the zero value.
func Info(ctx context.Context) CallInfo {
	if call := tools.CallFrom(ctx); call != nil {
		return CallInfo(call.Info())
	}
	return CallInfo{}
}

// Variables holds the context variables of the chat during one call. Get it with [Vars]. It is
// safe for concurrent use.
type Variables struct{ vars *tools.Variables }

// Vars returns the context variables of the call that ctx belongs to. Changes are stored if the
// tool succeeds. Outside a tool the container is empty and its changes are discarded.
func Vars(ctx context.Context) Variables { return Variables{tools.Vars(ctx)} }

// Get returns a variable as a value tree (nil, bool, string, json.Number, []any,
// map[string]any), which must not be modified, and whether it exists.
func (v Variables) Get(key string) (any, bool) { return v.vars.Get(key) }

// Set changes a variable. The value is encoded as JSON immediately, which is the only thing that can
// fail: a value without a JSON form is an error and changes nothing.
func (v Variables) Set(key string, value any) error { return v.vars.Set(key, value) }

// Remove removes a variable, if it exists.
func (v Variables) Remove(key string) { v.vars.Remove(key) }

// Keys returns the names of all variables, sorted.
func (v Variables) Keys() []string { return v.vars.Keys() }
