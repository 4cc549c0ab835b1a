// Package conformance is the suite that every kind of [tools.Invoker] passes: what an engine may
// rely on, whatever is called.
//
// The kind brings a counterpart, a real one in a separate process where the kind has that, with
// these functions; [Function] has them for counterparts in Go. The caller of the suite looks for
// goroutines that are left in its TestMain.
//
//	echo       the arguments
//	fail_user  user_error "no such city"
//	fail       tool_error "it broke"
//	busy       a retryable failure until attempt args.succeeds_at, then {"attempt": n}
//	slow       takes args.seconds, then null; ends immediately when the call is cancelled
//	crash      the process or the handler ends without an answer
//	progress   reports 25 "step 1", 50 "step 2", 75 "step 3", then {"done": true}
//	big        {"text": "x…"} with args.bytes of x
//	identity   {"idempotency_key", "fencing_token", "epoch", "attempt", "depth"} as it was passed
//	ask        asks "color" and returns {"color": answer}
//	null       null, or nothing
//	garbage    what is not JSON
//	text       "done", as a text if the kind has texts that are not JSON
//	marked     {"ok": true} after a byte order mark, with white space around
//	nan        {"count": NaN}
//	huge       {"number": 1000…} of 81 digits
//	lowly      user_error "no such city", with the names of headers in lower case
//	later      a retryable failure that is to be tried after 7 s
//
// slow and crash append the line "begun" to the file args.note when they are entered, and slow
// the line "cancelled" when it is cancelled, before it ends. Without args.note they do not.
//
// conformance.go lists the promises; results.go, failures.go, deadlines.go and questions.go check them. functions.go
// has the functions for counterparts in Go.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

// Kind is what is held to the suite.
type Kind struct {
	Name string
	// Invoker of a function of the suite, by its name.
	Invoker func(function string) tools.Invoker
	// Cannot names what the kind cannot do, each with the reason: functions, and the promises
	// [CancelReaches] and [CrashIsKnown].
	Cannot map[string]string
	// Answer makes what answers ask with a color: the question's name, or its number as text, and
	// the value. nil is for one that is called color and takes any value.
	Answer func(color string) (question string, value any)
	// MaxOutput is the limit of a result in bytes that the invokers have been given, 0 if they have no such ids.
	MaxOutput int
	// Close ends what the invokers share, after the tests; nil if there is nothing.
	Close func(ctx context.Context) error
}

// Promises that a kind may not be able to keep, see [Kind].
const (
	CancelReaches = "cancel reaches" // the counterpart hears that a call was cancelled
	CrashIsKnown  = "crash is known" // the end of a call whose counterpart crashed is not a timeout
)

// patience is how long a test waits for what has to happen, on a busy machine.
const patience = 20 * time.Second

// test is one promise.
type test struct {
	name  string
	needs []string // functions of the suite, and promises
	run   func(*suite)
}

// suite is one promise, held against a kind.
type suite struct {
	*testing.T

	kind  Kind
	notes string // folder
}

// Run holds a kind to the suite.
func Run(t *testing.T, kind Kind) {
	t.Helper()
	t.Run(kind.Name, func(t *testing.T) {
		t.Parallel()
		for what, why := range kind.Cannot {
			require.NotEmpty(t, why, "state why %s cannot %s", kind.Name, what)
		}
		notes := t.TempDir()
		if kind.Close != nil {
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
				defer cancel()
				require.NoError(t, kind.Close(ctx))
			})
		}
		for _, c := range slices.Concat(results, failures, deadlines, questionTests) {
			if slices.ContainsFunc(c.needs, func(what string) bool { return kind.Cannot[what] != "" }) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(&suite{t, kind, notes})
			})
		}
	})
}

// call of a function with arguments as JSON. Each test has separate calls.
func (s *suite) call(function, args string) *tools.Call {
	s.Helper()
	tree, err := events.Decode([]byte(args))
	require.NoError(s, err)
	object, ok := tree.(map[string]any)
	require.True(s, ok)
	return &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat-1", Turn: s.Name()}, CallID: s.Name(), Workflow: "Suite", Agent: "Tester",
		UserID: "ada", Name: function, Args: object, Context: map[string]any{}, IdempotencyKey: "key-of-" + s.Name(),
		FencingToken: 4711, Epoch: 1, Attempt: 1,
	}
}

// invoke calls a function without an engine around it.
func (s *suite) invoke(function, args string) (tools.Result, error) {
	s.Helper()
	return s.run(s.call(function, args))
}

func (s *suite) run(call *tools.Call) (tools.Result, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	return s.kind.Invoker(call.Name).Invoke(ctx, call)
}

// do calls a function as a worker does, in so many attempts at most, each within a time.
func (s *suite) do(ctx context.Context, call *tools.Call, attempts int, timeout time.Duration) engine.Outcome {
	s.Helper()
	tool := engine.Tool{Invoker: s.kind.Invoker(call.Name), MaxAttempts: attempts, Timeout: timeout}
	o := engine.New(engine.Options{Grace: patience}).Do(ctx, engine.Invocation{Call: call, Tool: tool})
	require.False(s, o.Abandoned, "an invoker has to return when its context ends")
	return o
}

// note names a file for the notes of a call, and returns the arguments with it besides.
func (s *suite) note(args map[string]any) (file, withNote string) {
	s.Helper()
	file = filepath.Join(s.notes, filepath.Base(s.Name()))
	args["note"] = file
	data, err := json.Marshal(args)
	require.NoError(s, err)
	return file, string(data)
}

// noted returns how often a line is in a note.
func (s *suite) noted(file, line string) int {
	s.Helper()
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	require.NoError(s, err)
	return strings.Count(string(data), line+"\n")
}

func (s *suite) eventuallyNoted(file, line string) {
	s.Helper()
	require.Eventually(s, func() bool { return s.noted(file, line) > 0 }, patience, 5*time.Millisecond, "the counterpart has not noted %q", line)
}

// works requires that the invokers are usable, perhaps once what has crashed is back.
func (s *suite) works() {
	s.Helper()
	var value json.RawMessage
	require.Eventually(s, func() bool {
		result, err := s.invoke("echo", `{"still":"there"}`)
		value = result.Value
		return err == nil
	}, patience, 20*time.Millisecond, "no call succeeds any more")
	require.JSONEq(s, `{"still":"there"}`, string(value))
}

// failed requires that err is one of a code, and final.
func (s *suite) failed(err error, text string, codes ...events.Code) {
	s.Helper()
	require.Error(s, err)
	require.Contains(s, codes, events.CodeOf(err), "%v", err)
	require.False(s, tools.IsRetryable(err), "it may have happened: %v", err)
	require.Contains(s, err.Error(), text)
}
