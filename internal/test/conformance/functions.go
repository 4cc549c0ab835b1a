package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// The functions that each kind of tool has to offer to the suite. Counterparts in Go call Function; those in other
// languages do the same by hand.

// Identity is what a counterpart got to know of the call: the result of the function identity.
type Identity struct {
	IdempotencyKey string `json:"idempotency_key"`
	FencingToken   uint64 `json:"fencing_token"`
	Epoch          int    `json:"epoch"`
	Attempt        int    `json:"attempt"`
	Depth          int    `json:"depth"` // 0 also if it was not passed
}

// Host is what the functions need of the side on which they run. Fields of functions that the
// kind cannot have may be nil.
type Host struct {
	Identity Identity
	// Progress reports to the caller.
	Progress func(ctx context.Context, percent float64, message string) error
	// Ask asks a question without payload or schema by its name.
	Ask func(ctx context.Context, name string) (json.RawMessage, error)
	// Crash ends the process or the handler; nil is a panic.
	Crash func()
}

// Lines of a note, the file that args.note of slow and crash names.
const (
	noteBegun     = "begun"
	noteCancelled = "cancelled"
)

// Function is what the counterpart does for a function of the suite, for those that are written
// in Go: they bring it the arguments and take its result, and its error by the rules of their
// kind. The errors of busy and later are retryable; the results of garbage, marked and nan are not JSON.
func Function(ctx context.Context, name string, args json.RawMessage, host Host) (json.RawMessage, error) {
	var in struct {
		Seconds    float64 `json:"seconds"`
		Bytes      int     `json:"bytes"`
		SucceedsAt int     `json:"succeeds_at"`
		Note       string  `json:"note"`
	}
	if err := json.Unmarshal(args, &in); err != nil && name != "echo" {
		return nil, failure(events.CodeBadArgs, "the arguments are not an object of these functions")
	}
	switch name {
	case "echo":
		return args, nil
	case "fail_user":
		return nil, failure(events.CodeUserError, "no such city")
	case "fail":
		return nil, failure(events.CodeToolError, "it broke")
	case "busy":
		if host.Identity.Attempt < in.SucceedsAt {
			return nil, tools.Retryable(failure(events.CodeToolError, "busy"))
		}
		return encode(map[string]any{"attempt": host.Identity.Attempt})
	case "slow":
		return nil, sleep(ctx, in.Note, time.Duration(in.Seconds*float64(time.Second)))
	case "crash":
		return nil, crash(in.Note, host.Crash)
	case "progress":
		return progress(ctx, host.Progress)
	case "big":
		return encode(map[string]any{"text": strings.Repeat("x", in.Bytes)})
	case "identity":
		return encode(host.Identity)
	case "ask":
		answer, err := host.Ask(ctx, "color")
		if err != nil {
			return nil, err
		}
		return encode(map[string]any{"color": answer})
	case "null":
		return json.RawMessage("null"), nil
	case "garbage":
		return json.RawMessage("{this is not JSON"), nil
	case "text":
		return json.RawMessage(`"done"`), nil
	case "marked":
		return json.RawMessage("\ufeff {\"ok\": true}\r\n"), nil
	case "nan":
		return json.RawMessage(`{"count": NaN}`), nil
	case "huge":
		return json.RawMessage(`{"number": 1` + strings.Repeat("0", 80) + `}`), nil
	case "lowly":
		return nil, failure(events.CodeUserError, "no such city")
	case "later":
		return nil, tools.RetryAfter(failure(events.CodeToolError, "busy"), 7*time.Second)
	default:
		return nil, failure(events.CodeUnknownTool, fmt.Sprintf("unknown function %q of the suite", name))
	}
}

func progress(ctx context.Context, report func(context.Context, float64, string) error) (json.RawMessage, error) {
	for i := range 3 {
		if err := report(ctx, float64(25*(i+1)), fmt.Sprintf("step %d", i+1)); err != nil {
			return nil, err
		}
	}
	return encode(map[string]any{"done": true})
}

func sleep(ctx context.Context, note string, d time.Duration) error {
	if err := write(note, noteBegun); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if err := write(note, noteCancelled); err != nil {
			return err
		}
		return ctx.Err()
	}
}

func crash(note string, end func()) error {
	if err := write(note, noteBegun); err != nil {
		return err
	}
	if end != nil {
		end()
	}
	panic("the function crashes, as asked")
}

// write adds a line to the file that a call names, if it names one.
func write(file, line string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return failure(events.CodeToolError, "open the note: "+err.Error())
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		return failure(events.CodeToolError, "write the note: "+err.Error())
	}
	return nil
}

func encode(v any) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, failure(events.CodeToolError, err.Error())
	}
	return data, nil
}

func failure(code events.Code, msg string) error {
	return &events.Error{Code: code, Op: "conformance", Msg: msg}
}
