package tools

import (
	"context"
	"fmt"
	"sync"

	"github.com/oneturn/oneturn/events"
)

// maxStepName bounds the name of a step, in bytes: it is part of a record's key.
const maxStepName = 256

// HostFrom returns the host of the call that ctx belongs to. Op names the operation: it begins
// the text of the error, which is a tool_error outside a call and where the caller has no host.
func HostFrom(ctx context.Context, op string) (Host, error) {
	call := CallFrom(ctx)
	switch {
	case call == nil:
		return nil, &events.Error{
			Code: events.CodeToolError, Op: op,
			Msg: "this context does not belong to a call of a tool: pass the context that the tool was called with",
		}
	case call.Host == nil:
		return nil, &events.Error{
			Code: events.CodeToolError, Op: op,
			Msg: "no host: run the tool in a worker or test it with oneturntest.Host",
		}
	}
	return call.Host, nil
}

// steps are the names of the steps that a run has begun.
type steps struct {
	mu    sync.Mutex
	begun map[string]bool
}

type stepKey struct{}

// BeginStep records that the run of ctx's call begins the step of this name, and returns the
// context to do it in. A name that the run has begun before is an error: the second step would
// get the result of the first.
func BeginStep(ctx context.Context, name string) (context.Context, error) {
	r, ok := ctx.Value(runningKey{}).(*running)
	fail := func(msg string) (context.Context, error) {
		return nil, &events.Error{Code: events.CodeToolError, Op: fmt.Sprintf("step %q", name[:min(len(name), maxStepName)]), Msg: msg}
	}
	switch {
	case !ok:
		return fail("this context does not belong to a call of a tool: pass the context that the tool was called with")
	case name == "":
		return fail("a step needs a name: its result is stored under it")
	case len(name) > maxStepName:
		return fail(fmt.Sprintf("the name has %d bytes, the limit is %d", len(name), maxStepName))
	}
	r.steps.mu.Lock()
	defer r.steps.mu.Unlock()
	if r.steps.begun[name] {
		return fail("the run has begun a step of this name before: in a loop, make it unique in each pass, such as \"charge 2\"")
	}
	if r.steps.begun == nil {
		r.steps.begun = map[string]bool{}
	}
	r.steps.begun[name] = true
	return context.WithValue(ctx, stepKey{}, name), nil
}

// StepFrom returns the name of the step that ctx was made for by [BeginStep], "" outside one.
func StepFrom(ctx context.Context) string {
	name, _ := ctx.Value(stepKey{}).(string)
	return name
}
