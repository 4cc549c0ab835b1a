package bindings

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/defaults"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A [Binding] is all that a worker knows about a tool for one agent; load.go and bind.go make it. Its Target,
// Limits and Guards are for the worker: other programs read Kind, File, Function and the schemas. A [Declaration]
// is a binding written in Go, as oneturn.NewTool makes it.

// Kind is what runs a tool.
type Kind string

// Kinds of tools.
const (
	KindPython Kind = "python" // a function of a file in the workflow's folder
	KindGo     Kind = "go"     // a function that the worker's program has registered
	KindNATS   Kind = "nats"   // an endpoint of a NATS service
	KindMCP    Kind = "mcp"    // a tool of an MCP server
	KindHTTP   Kind = "http"   // an HTTP endpoint
	KindAgent  Kind = "agent"  // a model or another agent
)

// Effect is what a tool may do to the world, see [events.Effect].
type Effect = events.Effect

// Effects of tools, see [events.Effect].
const (
	EffectUnsafe     = events.EffectUnsafe
	EffectReplay     = events.EffectReplay
	EffectKeyed      = events.EffectKeyed
	EffectIdempotent = events.EffectIdempotent
	EffectNone       = events.EffectNone
)

func effects() []string {
	all := events.Effects()
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = string(e)
	}
	return names
}

// Bounds and defaults of what a manifest may ask for.
const (
	DefaultMaxAttempts = 1
	maxAttemptsLimit   = 100
	maxTimeout         = defaults.MaxTurnLife
	maxTimeoutText     = "168h"
)

// Binding is what a turn calls and how. It is immutable and safe for concurrent use.
type Binding struct {
	Workflow    string // name of the workflow
	Dir         string // its folder relative to the root; "." if the root is the workflow, "" if it exists in code only
	Agent       string
	ModelName   string // "" if the agent has no model
	Tool        string // name shown in events and tool logs
	Description string

	Kind     Kind
	File     string        // Python: relative to the root, slash-separated
	Function string        // Python: name of the function
	Target   target.Target // of the other kinds: where the tool is; nil for Python and Go
	Program  *Program      // of kind plan and orchestrate, else nil
	Shared   string        // name of the shared tool that it is, whose calls are counted in all workflows together; "" if it is counted on its own

	Effect         Effect
	EffectWhy      string        // where the effect was taken from
	EffectDeclared bool          // the manifest names the effect: what the tool itself declares does not count
	MaxAttempts    int           // 1 = no retry
	Timeout        time.Duration // of one attempt; 0 = the worker's default

	Input  *model.Model // checks its arguments; nil without a schema
	Output *model.Value // checks its result; nil without a schema
	// InputSchema and OutputSchema describe arguments and result, JSON Schema 2020-12: what is
	// checked, else what the code declares; nil if nothing is known.
	InputSchema, OutputSchema json.RawMessage

	Cache  Cache
	Limits target.Limits
	Guards []guards.Guard // in the order of the manifest

	Component string // UI component, "" if none
	Display   string // where the component shows: inline, artifact, …; "" if not set
	Secret    bool   // answers to the questions of this UI tool are secret

	Model            *model.Model // checks the data; nil if the agent has none
	AcceptsContext   bool         // the tool takes the context container
	Enterprise       bool         // the files of the workflow call the tenant enterprise_id
	SignatureUnknown bool         // parameters are mapped when the tool is called, by the rule of Args

	Digest        string // of the workflow's manifests and code
	CompatSilent  bool   // failures publish nothing, as MozaiksAI does
	CompatEvents  bool   // answers are also published under their older names (ui_tool_complete, ui_tool_dismiss)
	RunOnKeyReuse bool   // a turn key that comes again with other data is a separate turn
	// FollowKeyReuse means that such data is refused explicitly (on_key_reuse: refuse): turns that it made while
	// the workflow ran it are searched for, which costs a read per turn.
	FollowKeyReuse bool

	at         place
	declared   declaration
	parameters parameters
	spilled    bool     // **kwargs gets nothing, as in MozaiksAI
	unclear    []string // see [parameters.ambiguous]
}

// Declaration is a binding made in Go code. It creates its workflow if no folder has it, and
// it comes after the manifests: of two tools for one agent and model the later one is bound.
type Declaration struct {
	Workflow string // required
	Agent    string // required
	// Model is the model's name in events. "" = the tool's name if there is a Schema, else the
	// agent's registered model, if any.
	Model string
	Tool  string // required
	// Schema is the JSON Schema (2020-12) of the model. Without it Model must be a model of
	// the workflow's manifests, or "".
	Schema      json.RawMessage
	Effect      Effect        // "" = the default of the workflow, else replay with a Component, else unsafe
	MaxAttempts int           // 0 = the workflow's default, else 1
	Timeout     time.Duration // 0 = the workflow's default, else the worker's
	Component   string        // UI component
	Mode        string        // where it shows
	// Output is the JSON Schema of the result. It describes, nothing is checked with it.
	Output json.RawMessage
	Cache  Cache // of a tool whose effect is none
	Limits target.Limits
	Guards []guards.Guard // asked in this order
}

// fingerprint distinguishes declarations. Guards are code: only their number is part of it.
func (d *Declaration) fingerprint() []byte {
	plain := *d
	plain.Guards = nil
	return fmt.Appendf(nil, "%#v %d", plain, len(d.Guards))
}

// Registered is a Go function that the program has registered, for manifests to bind by its name.
type Registered struct {
	Input, Output json.RawMessage // JSON Schemas of its types, nil if they have none
}
