package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A call is made of the same parts as in a worker: the binding gives the tool, the call and the arguments
// (internal/run), and the engine runs it. Only the host is another one (call_host.go), and there is no journal:
// nothing is stored, and limits and caches are not applied.

// callSettings configure turnctl call.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type callSettings struct {
	toolSettings
	contextSettings

	Workflows   string        `flag:"workflows" default:"workflows" help:"Folder of the workflow manifests and their tools."`
	ToolTimeout time.Duration `flag:"tool-timeout" default:"60s" min:"1ms" max:"24h" help:"Time limit of a tool whose manifest sets none, as for the worker."`
	Trace       bool          `flag:"trace" default:"false" help:"Print the phases of the call on standard error."`
}

// caller has the ids that a tool is called with.
type caller struct{ app, chat, user, agent string }

func (a *app) call() *cobra.Command {
	var cfg callSettings
	var who caller
	c := a.command(&cobra.Command{
		Use:   "call TOOL [JSON]",
		Short: "Call one tool as a worker would, without a turn",
		Long: `Call runs one tool of a folder of workflows, by the rules of its manifest, and prints the result. TOOL
is the name of a tool, or WORKFLOW/TOOL. JSON is the output of the agent, "-" reads it from standard
input: it is validated against the agent's model and passed to the tool as in a turn. Nothing is stored
in the journal, and limits and caches are not applied.

The tool really runs, with all its effects. Each call has a separate idempotency key.

NATS services are called with --nats; other tools need no server. Tools in Go are part of the worker's
program and cannot be called. Questions of a tool are asked on the terminal; without a terminal, and
with -o json, a tool that asks fails. Progress and the output of a tool go to standard error.

Exit code: 0 the tool succeeded, 1 it failed, 2 the tool does not exist, or the command line is
invalid. The shape of -o json:

  {"workflow", "tool", "kind", "status", "success", "code", "message", "content", "result",
   "cached", "attempts", "duration_ms", "waited_ms", "set": {}, "remove": []}`,
		Example: `  turnctl call greet '{"name": "Ada"}'
  turnctl call Orders/charge - --workflows ./workflows --trace < order.json`,
		Args: cli.Arguments(1, 2, "the tool to call"),
	}, &cfg, func(ctx context.Context, args []string) error {
		raw, err := a.argument(args[1:])
		if err != nil {
			return err
		}
		set, err := load(ctx, "call", cfg.Workflows, cfg.Python, cfg.sources(a.env))
		if err != nil {
			return err
		}
		binding, err := findTool(set, args[0], who.agent)
		if err != nil {
			return err
		}
		return a.callTool(ctx, &cfg, set, binding, who, raw)
	})
	c.Flags().StringVar(&who.app, "app", events.DefaultApp, "tenant of the call")
	c.Flags().StringVar(&who.chat, "chat", "turnctl", "chat of the call")
	c.Flags().StringVar(&who.user, "user", "", "user of the call")
	c.Flags().StringVar(&who.agent, "agent", "", "agent of the call (default: the first agent with this tool); it also selects the tool if several workflows have one of this name")
	return c
}

// argument is the JSON that a command line gives the tool, nil for none.
func (a *app) argument(args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return json.RawMessage{}, nil
	}
	if args[0] != "-" {
		return json.RawMessage(args[0]), nil
	}
	data, err := a.readJSON("call", args[0], "standard input")
	if err != nil {
		return nil, err
	}
	a.terminal = false // standard input is read: no question can be asked
	return data, nil
}

// callTool runs a tool and prints the outcome.
func (a *app) callTool(ctx context.Context, cfg *callSettings, set *bindings.Set, b *bindings.Binding, who caller, raw json.RawMessage) error {
	turn := &events.StructuredOutputReady{
		TurnID: events.TurnID{App: who.app, Chat: who.chat, Turn: "call-" + strings.ToLower(rand.Text())}, Workflow: b.Workflow, Agent: b.Agent, UserID: who.user,
	}
	box := a.newBox(cfg.Workflows, &cfg.toolSettings, []*bindings.Binding{b})
	defer box.close()
	tool, err := box.find(b)
	if err != nil {
		return errors.New(messageOf(err))
	}
	call := run.Call(b, turn, turn.Turn)
	call.FencingToken, call.Epoch, call.Secrets = 1, 1, &redact.SecretAnswers{}
	if b.AcceptsContext {
		chat := bindings.Chat{App: turn.App, ID: turn.Chat, Workflow: b.Workflow, User: turn.UserID}
		call.Context = b.Context(turn, set.StartValues(b.Workflow, &chat))
	}
	hosts := a.newTerminalHosts(cfg, call, func(tool string) bool { return b.Secret || set.AsksSecrets(b.Workflow, tool) })
	inv := engine.Invocation{Call: call, Hosts: hosts, Tool: run.Tool(b, tool, b.Effect, "")}
	options := engine.Options{Timeout: cfg.ToolTimeout}
	if cfg.Trace {
		options.Tracer = tracer{a.stderr}
	}
	var out engine.Outcome
	if call.Args, err = arguments(b, turn, raw); err != nil {
		out = engine.Failure(b.Tool, err)
	} else {
		out = engine.New(options).Do(ctx, inv)
		own := b.TrustedData(turn)
		maps.DeleteFunc(out.Set, func(name string, _ any) bool { return own[name] != nil })
		out.Remove = slices.DeleteFunc(out.Remove, func(name string) bool { return own[name] != nil })
	}
	if out.Stopped != nil {
		return fmt.Errorf("call %s: stopped: %w", id(b.Tool), out.Stopped)
	}
	err = a.printCall(cfg.Format, newCallReport(b, call, &out))
	var file *target.FileError
	if err != nil && errors.As(out.Err, &file) && cfg.Format != "json" {
		err = fmt.Errorf("%w (%s)", err, file.Error())
	}
	var host *target.HostError
	if err != nil && errors.As(out.Err, &host) && cfg.Format != "json" {
		err = fmt.Errorf("%w (%s)", err, host.Error())
	}
	return err
}

// arguments maps the output of an agent to the arguments of the tool, as for a turn.
func arguments(b *bindings.Binding, turn *events.StructuredOutputReady, raw json.RawMessage) (map[string]any, error) {
	var tree any = map[string]any{}
	if strings.TrimSpace(string(raw)) != "" {
		var err error
		if tree, err = events.Decode(raw); err != nil {
			return nil, &events.Error{Code: events.CodeBadArgs, Msg: "the JSON cannot be read: " + messageOf(err), Err: err}
		}
	}
	args, _, violations := run.Arguments(b, turn, tree)
	switch {
	case len(violations) > 0 && b.Model == nil:
		return nil, &events.Error{Code: events.CodeBadArgs, Msg: "the JSON must be an object"}
	case len(violations) > 0:
		return nil, &events.Error{Code: events.CodeValidationFailed, Msg: model.Feedback(b.ModelName, violations)}
	}
	return args, nil
}

// callReport is the outcome of turnctl call. Its JSON shape is stable: fields are only added.
type callReport struct {
	Workflow   string          `json:"workflow,omitempty"`
	Tool       string          `json:"tool"`
	Kind       bindings.Kind   `json:"kind"`
	Status     string          `json:"status"`  // ok, error
	Success    bool            `json:"success"` // status is ok, and the result has no other status
	Code       events.Code     `json:"code,omitempty"`
	Message    string          `json:"message,omitempty"` // of a failure, for programs
	Content    string          `json:"content"`           // for people
	Result     json.RawMessage `json:"result"`            // null after a failure
	Cached     bool            `json:"cached"`
	Attempts   int             `json:"attempts"`
	DurationMS float64         `json:"duration_ms"`
	WaitedMS   float64         `json:"waited_ms"` // before the tool was entered
	Set        map[string]any  `json:"set"`       // context variables that the tool set
	Remove     []string        `json:"remove"`    // those that it removed
}

func newCallReport(b *bindings.Binding, call *tools.Call, out *engine.Outcome) *callReport {
	r := &callReport{
		Workflow: b.Workflow, Tool: b.Tool, Kind: b.Kind, Status: out.Status, Success: out.Success, Code: out.Code,
		Message: call.Secrets.Text(out.Message), Content: call.Secrets.Text(out.Content), Cached: out.Cached, Attempts: out.Attempts,
		DurationMS: milliseconds(out.Duration), WaitedMS: milliseconds(out.Waited), Set: map[string]any{}, Remove: []string{},
	}
	if set, ok := call.Secrets.Value(out.Set).(map[string]any); ok && out.Set != nil {
		r.Set = set
	}
	for _, name := range out.Remove {
		r.Remove = append(r.Remove, call.Secrets.Text(name))
	}
	if out.Status == events.StatusOK {
		r.Result = call.Secrets.JSON(out.Payload)
	}
	return r
}

func (a *app) printCall(format string, r *callReport) error {
	if format == "json" || r.Status == events.StatusOK {
		if err := a.print(format, r, r.text); err != nil {
			return err
		}
	}
	switch {
	case r.Success:
		return nil
	case format == "json":
		return cli.ErrReported
	case r.Status == events.StatusOK:
		return fmt.Errorf("call %s: the tool returned a failure", id(r.Tool))
	default:
		return fmt.Errorf("call %s: %s: %s", id(r.Tool), r.Code, cleanLines(r.Content))
	}
}

// text prints the result.
func (r *callReport) text(w io.Writer) {
	tree, err := events.Decode(r.Result)
	if err != nil {
		fmt.Fprintf(w, "%s\n", r.Result)
		return
	}
	_ = cli.WriteJSON(w, tree, "  ") // JSON that was just read
}

// cleanLines is [clean] for a text of several lines.
func cleanLines(text string) string {
	const longest = 4000
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = clean(line, longest)
	}
	return strings.Join(lines, "\n")
}
