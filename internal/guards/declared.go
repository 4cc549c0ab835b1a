package guards

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Sides of a call that a declared guard may look at.
const (
	OnInput  = "input"  // before the tool is entered
	OnOutput = "output" // its result
)

// Declared is a guard as a manifest says it. Exactly one of Schema, When, Secrets and MaxBytes is
// set.
type Declared struct {
	On string // [OnInput] or [OnOutput]
	// Schema is the JSON Schema that the arguments or the result have to fit as they are: nothing
	// is coerced or completed.
	Schema json.RawMessage
	// When is the condition to refuse, in the language of expr: see [Compile].
	When string
	// Secrets refuses values that look like credentials.
	Secrets bool
	// MaxBytes is the most that the arguments or the result may have as JSON.
	MaxBytes int
	// Message is told instead of the guard's own words when it refuses.
	Message string
}

// DeclaredError is why [Compile] refuses a declared guard.
type DeclaredError struct {
	Field   string // key of the manifest: on, schema, when, max_bytes, message
	Message string // what is wrong
	Mend    string // what to write
}

// Error implements error.
func (p *DeclaredError) Error() string {
	return "guard: " + p.Field + ": " + p.Message + "; " + p.Mend
}

// maxMessage bounds the message of a guard, in bytes.
const maxMessage = 1 << 10

// Compile makes the guard. Its error is a *[DeclaredError].
//
// A condition is a boolean expression of args, output (on: output only), agent, workflow, tool,
// user_id, chat_id and app_id; true refuses. It can call the functions of [Functions] and nothing
// else, its time is bounded, and one that fails refuses the call as well.
func Compile(d Declared) (Guard, error) {
	if d.On != OnInput && d.On != OnOutput {
		return nil, &DeclaredError{"on", fmt.Sprintf("%.40q is no side of a call", d.On), "write on: input or on: output"}
	}
	if len(d.Message) > maxMessage {
		return nil, &DeclaredError{"message", fmt.Sprintf("it has %d bytes", len(d.Message)), fmt.Sprintf("write at most %d", maxMessage)}
	}
	check, err := d.check()
	if err != nil {
		return nil, err
	}
	if d.On == OnInput {
		return declared{input: check, message: d.Message, words: d.words()}, nil
	}
	return declared{output: check, message: d.Message, words: d.words()}, nil
}

// words is the guard in short, for people who look at manifests.
func (d Declared) words() string {
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
	said := make([]string, 0, 1)
	for _, x := range []struct {
		key string
		set bool
	}{{"schema", d.Schema != nil}, {"when", d.When != ""}, {"secrets", d.Secrets}, {"max_bytes", d.MaxBytes != 0}} {
		if x.set {
			said = append(said, x.key)
		}
	}
	switch {
	case len(said) == 0:
		return nil, &DeclaredError{"on", "the guard says nothing to look for", "add one of schema, when, secrets: refuse, max_bytes"}
	case len(said) > 1:
		return nil, &DeclaredError{said[1], "a guard looks for one thing, this has " + strings.Join(said, " and "), "write a guard for each"}
	}
	switch said[0] {
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
