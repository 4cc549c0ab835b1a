package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/oneturn/oneturn/events"
)

// Go functions as tools: Func decodes the arguments into the parameter of the function (decode_args.go), runs it
// with its call in the context, and turns its value, its error or its panic into a result.

// maxPanicText bounds what of a panic's value becomes part of an error message, in bytes.
const maxPanicText = 1024

// Func makes an invoker of a typed Go function. In is a struct with json tags, or map[string]any
// to get the arguments as they are (a shallow copy; numbers are json.Number). Arguments that
// do not fit In are bad_args; fields of In that have no argument stay zero. A panic becomes
// tool_error with a [PanicError] in its chain. Errors of fn are returned unchanged. A result of
// nil is null, one of type []byte {"type": "bytes", "len": n}. Fn is not entered when ctx has ended.
//
// fn runs in the goroutine of the caller and should return when ctx ends. Inside it
// [CallFrom] gives the call and [Vars] the context variables.
func Func[In, Out any](fn func(ctx context.Context, in In) (Out, error)) Invoker {
	return &function[In, Out]{call: fn, decode: decoderFor(reflect.TypeFor[In]())}
}

// SchemaOf returns the JSON Schema (draft 2020-12) of a tool's input type. Fields without
// omitempty or omitzero are required, other properties are not allowed; a `jsonschema` tag
// describes a field. Types that have no JSON form, or contain themselves, are errors.
func SchemaOf[In any]() (json.RawMessage, error) {
	schema, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: jsonTypes()})
	if err != nil {
		return nil, fmt.Errorf("schema of %T: %w", *new(In), err)
	}
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of %T: %w", *new(In), err)
	}
	return data, nil
}

// jsonTypes are the types whose JSON differs from what their Go kind suggests.
func jsonTypes() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[[]byte]():          {Types: []string{"null", "string"}, ContentEncoding: "base64"},
	}
}

// PanicError is in the chain of the error of a Go tool that panicked.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // for the log, not for the user
}

// Error implements error. It does not contain the stack.
func (*PanicError) Error() string { return "the Go tool panicked" }

type function[In, Out any] struct {
	call   func(ctx context.Context, in In) (Out, error)
	decode func(data []byte, to any) error
}

// Invoke implements [Invoker].
func (f *function[In, Out]) Invoke(ctx context.Context, call *Call) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	in, err := f.args(call)
	if err != nil {
		return Result{}, err
	}
	r := &running{call: call, vars: Variables{before: call.Context}}
	if load := call.LoadContext; call.Context == nil && load != nil {
		r.vars.load = func() (map[string]any, error) { return load(ctx) }
	}
	out, err := f.run(context.WithValue(ctx, runningKey{}, r), call, in)
	if err != nil {
		return Result{}, err
	}
	value, err := encode(out)
	if err != nil {
		return Result{}, Returned(&events.Error{
			Code: events.CodeToolError, Op: operation(call),
			Msg: fmt.Sprintf("the result of type %T has no JSON form", out), Err: err,
		})
	}
	set, remove, err := r.vars.changes()
	if err != nil {
		e := &events.Error{Code: events.CodeToolError, Op: operation(call), Msg: "the context variables cannot be read", Err: err}
		var corrupt *events.Error
		if errors.As(err, &corrupt) && corrupt.Code == events.CodeStateCorrupt {
			e.Code, e.Msg = corrupt.Code, "the tool ran without its context variables: "+corrupt.Msg
		}
		return Result{}, Returned(e)
	}
	return Result{Value: value, Set: set, Remove: remove}, nil
}

// encode makes JSON of a result. Bytes become their length: JSON has no form for them.
func encode(out any) (json.RawMessage, error) {
	if data, ok := out.([]byte); ok && data != nil {
		return fmt.Appendf(nil, `{"type":"bytes","len":%d}`, len(data)), nil
	}
	return json.Marshal(out) //nolint:wrapcheck // the caller adds the context
}

// run calls the function and turns a panic into an error.
func (f *function[In, Out]) run(ctx context.Context, call *Call, in In) (out Out, err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		text := fmt.Sprint(value)
		err = Unknown(&events.Error{
			Code: events.CodeToolError, Op: operation(call),
			Msg: "panic: " + strings.ToValidUTF8(text[:min(len(text), maxPanicText)], ""),
			Err: &PanicError{Value: value, Stack: debug.Stack()},
		})
	}()
	return f.call(ctx, in)
}

// args makes In of the call's arguments.
func (f *function[In, Out]) args(call *Call) (In, error) {
	var in In
	if whole, ok := any(&in).(*map[string]any); ok {
		*whole = maps.Clone(call.Args)
		return in, nil
	}
	data, err := call.EncodedArgs()
	if err == nil {
		err = f.decode(data, &in)
	}
	if err != nil {
		return in, &events.Error{
			Code: events.CodeBadArgs, Op: operation(call),
			Msg: fmt.Sprintf("the arguments do not fit %T", in), Err: err,
		}
	}
	return in, nil
}

func operation(call *Call) string { return "call " + call.Name }
