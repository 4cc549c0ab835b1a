package tools

import (
	"context"
	"encoding/json"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/redact"
)

// Invoker runs one call of something that can be called. Invoke must return when ctx ends; a tool that does
// not is abandoned and its late result is dropped. Errors should be *[events.Error] with one
// of the codes bad_args, user_error, tool_error, timeout or too_large; any other error counts as
// tool_error. Wrap an error with [Retryable] to report that nothing has happened and the call
// may be tried again.
type Invoker interface {
	Invoke(ctx context.Context, call *Call) (Result, error)
}

// Queuer is an [Invoker] that may let a call wait before it runs it, for example for a free
// process. It reports when the call is entered ([Call.Enter]); the time that an attempt may take
// begins then, and waiting is bounded by the context alone.
type Queuer interface {
	Invoker
	// Queues reports whether calls may wait. The caller asks before each Invoke.
	Queues() bool
}

// Queues reports whether t is a [Queuer] whose calls may wait.
func Queues(t Invoker) bool {
	q, ok := t.(Queuer)
	return ok && q.Queues()
}

// Call is one call of a tool.
type Call struct {
	Turn     events.TurnID  // identity of the turn
	CallID   string         // equals tool_call_id of the event
	Workflow string         // workflow name
	Agent    string         // agent of the event
	UserID   string         // user, "" when unknown
	Name     string         // tool name
	Args     map[string]any // mapped arguments: nil, bool, string, json.Number, []any, map[string]any
	// ArgsJSON is Args as JSON, canonical and strictly decodable, or nil if the caller has not
	// encoded them; [Call.EncodedArgs] returns it in either case. Code that changes Args sets it
	// to nil; its bytes are never changed.
	ArgsJSON json.RawMessage
	MapArgs  bool     // Args are fields of a model under their own names: the caller does not know the tool's parameters, the tool maps them itself
	Fields   []string // with MapArgs: what the model declares, all else matches parameters by their exact names only; nil without a model
	// Prompt is set when the product asks an agent, for example for a program. A tool that is a model asks with it instead
	// of Args, and returns the text of the answer; any other tool gets Args, which have the same content.
	Prompt *Prompt
	// Program is set for a step of a program, whose references read fields of the result: a tool whose results may be plain
	// text returns them as an object, {"text": …}.
	Program bool
	Context map[string]any // context variables for the tool's container; nil when the tool takes none
	// LoadContext reads the context variables at their first use; used when Context
	// is nil. Both nil: the tool has none.
	LoadContext    func(ctx context.Context) (map[string]any, error)
	IdempotencyKey string // the same for every run of this call
	FencingToken   uint64 // journal sequence of the claim or takeover, grows with each
	Epoch          int    // 1 for the first owner, one more for each takeover
	Depth          int    // programs that the call is in, also those that have published its turn; 0 for none
	Effect         string // under which the tool is entered, "" if it is not known
	Attempt        int    // 1 for the first attempt of this run
	Trace          string // W3C traceparent of the turn, "" if it has none
	Host           Host   // questions, surfaces, progress and steps; nil when the caller has none
	// Secrets knows the secret answers that the call got, and redacts them; nil when it
	// cannot ask. The output of a tool's process is redacted by the package that runs it.
	Secrets *redact.SecretAnswers
	// Entered is called when the call begins to run, by [Call.Enter] and perhaps more than once;
	// it may be nil.
	Entered func()
}

// Enter reports that the call leaves the queue and may have effects from now on. A [Queuer] calls
// it within Invoke, before or as soon as it knows; a second call changes nothing.
func (c *Call) Enter() {
	if c != nil && c.Entered != nil {
		c.Entered()
	}
}

// Result is what a tool returned.
type Result struct {
	Value  json.RawMessage // JSON; nil means null
	Set    map[string]any  // context variables that the tool set
	Remove []string        // context variables that the tool removed
	Skill  string          // id of the skill that made the result, if the tool reports it outside of the value, see [SkillID]
}

// EncodedArgs returns Args as canonical JSON, an object also when there are none.
func (c *Call) EncodedArgs() (json.RawMessage, error) {
	switch {
	case c.ArgsJSON != nil:
		return c.ArgsJSON, nil
	case c.Args == nil:
		return json.RawMessage("{}"), nil
	}
	const usual = 1024
	return events.AppendJSON(make([]byte, 0, usual), c.Args)
}

// ArgsFor is [Call.EncodedArgs] for what is called with an input schema: the arguments as it completes and coerces
// them; nil takes them as they are. Errors have code bad_args, with a *[model.Refused] for violations.
func (c *Call) ArgsFor(op string, input *model.Model) (json.RawMessage, error) {
	encode := c.EncodedArgs
	if input != nil {
		args := c.Args
		if args == nil {
			args = map[string]any{}
		}
		conformed, changed, violations := input.Conform(args)
		if len(violations) > 0 {
			refused := &model.Refused{Model: c.Name, Violations: violations}
			return nil, &events.Error{Code: events.CodeBadArgs, Op: op, Msg: "bad_args:" + refused.Error(), Err: refused}
		}
		if changed {
			encode = func() (json.RawMessage, error) { return events.AppendJSON(nil, conformed) }
		}
	}
	data, err := encode()
	if err != nil {
		return nil, &events.Error{Code: events.CodeBadArgs, Op: op, Msg: "the arguments have no JSON form", Err: err}
	}
	return data, nil
}
