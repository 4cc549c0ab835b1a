package guards

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// Guards of manifests: Declared is one as it is written, Compile checks it and makes its one check (checks.go has
// the guard that results).

// Sides of a call that a declared guard can check.
const (
	OnInput  = "input"  // before the tool is entered
	OnOutput = "output" // its result
)

// Declared is a guard as a manifest declares it. Exactly one of Schema, When, Secrets and MaxBytes is
// set.
type Declared struct {
	On string // [OnInput] or [OnOutput]
	// Schema is the JSON Schema that the arguments or the result have to match as they are: nothing
	// is coerced or completed.
	Schema json.RawMessage
	// When is the condition to refuse, in the language of expr: see [Compile].
	When string
	// Secrets refuses values that look like credentials.
	Secrets bool
	// MaxBytes is the most that the arguments or the result may have as JSON.
	MaxBytes int
	// Message replaces the reason that the guard gives when it refuses.
	Message string
}

// maxMessage bounds the message of a guard, in bytes.
const maxMessage = 1 << 10

// Compile makes the guard. Its error is a *[diag.Error] with one finding, whose field is a
// key of the manifest: on, schema, when, max_bytes, message.
//
// A condition is a boolean expression of args, output (on: output only), agent, workflow, tool,
// user_id, chat_id and app_id; true refuses. It can call the functions of [Functions] and nothing
// else, its time is bounded, and one that fails refuses the call as well.
func Compile(d Declared) (Guard, error) {
	if d.On != OnInput && d.On != OnOutput {
		return nil, refused("on", "write on: input or on: output", "%.40q is not a side of a call", d.On)
	}
	if len(d.Message) > maxMessage {
		return nil, refused("message", fmt.Sprintf("write at most %d", maxMessage), "it has %d bytes", len(d.Message))
	}
	check, err := d.check()
	if err != nil {
		return nil, err
	}
	if d.On == OnInput {
		return declared{input: check, message: d.Message, summary: d.summary()}, nil
	}
	return declared{output: check, message: d.Message, summary: d.summary()}, nil
}

// summary is the guard in short, for reports about manifests.
func (d Declared) summary() string {
	switch {
	case d.Schema != nil:
		return d.On + " schema"
	case d.When != "":
		return d.On + " when " + d.When
	case d.Secrets:
		return d.On + " secrets"
	default:
		return fmt.Sprintf("%s over %d bytes", d.On, d.MaxBytes)
	}
}

// check returns the one check that d names.
func (d Declared) check() (check, error) {
	keys := make([]string, 0, 1)
	for _, x := range []struct {
		key string
		set bool
	}{{"schema", d.Schema != nil}, {"when", d.When != ""}, {"secrets", d.Secrets}, {"max_bytes", d.MaxBytes != 0}} {
		if x.set {
			keys = append(keys, x.key)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, refused("on", "add one of schema, when, secrets: refuse, max_bytes", "the guard checks nothing")
	case len(keys) > 1:
		return nil, refused(keys[1], "write a guard for each", "a guard checks one thing, this has %s", strings.Join(keys, " and "))
	}
	switch keys[0] {
	case "schema":
		return newSchema(d.On, d.Schema)
	case "when":
		return newCondition(d.On, d.When)
	case "secrets":
		return secret{}, nil
	default:
		return newSize(d.On, d.MaxBytes)
	}
}

// refused is the error of [Compile] about a key of the manifest.
func refused(key, fix, format string, args ...any) error {
	return diag.Errorf("guard", key, fix, format, args...)
}
