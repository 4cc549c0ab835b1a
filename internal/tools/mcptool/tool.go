package mcptool

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/nearest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A tool as callers see it: Describe and Invoke. findTool pins the description that the server gave first, or that
// the manifest names, and refuses another one; arguments are checked by its schema before a session is needed.

// Tool is one tool of an MCP server. It is safe for concurrent use.
type Tool struct {
	to     *target.MCP
	all    *Servers
	server *server
	tokens atomic.Uint64
	close  sync.Once

	mu  sync.Mutex
	pin *pinned // nil until the tool was read
}

// pinned is the tool as it was read first.
type pinned struct {
	*described

	input     *model.Model // nil if nothing can be checked here
	output    *model.Value // nil if nothing can be checked here
	unchecked []string     // what of the schemas is left to the server
}

var (
	_ tools.Queuer    = (*Tool)(nil)
	_ tools.Describer = (*Tool)(nil)
	_ tools.Closer    = (*Tool)(nil)
)

// New returns a tool of a server. It starts nothing: the first call does, or [Tool.Describe].
func New(t *target.MCP, o Options) *Tool {
	if o.Servers == nil {
		o.Servers = NewServers(o)
	}
	to := t.Server
	if to == nil {
		to = &target.MCPServer{}
	}
	return &Tool{to: t, all: o.Servers, server: o.Servers.join(to)}
}

// Queues implements [tools.Queuer]: a call waits for a session, which may have to be started.
func (*Tool) Queues() bool { return true }

// Close implements [tools.Closer]. The sessions of the server end if no other tool uses it.
func (t *Tool) Close(ctx context.Context) error {
	var err error
	t.close.Do(func() { err = t.all.leave(ctx, t.server) })
	return err
}

// Known implements [tools.Describer].
func (t *Tool) Known() (tools.Description, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pin == nil {
		return tools.Description{}, false
	}
	return t.description(t.pin), true
}

// Describe implements [tools.Describer]. It asks the server once: from then on the tool is what
// it was.
func (t *Tool) Describe(ctx context.Context) (tools.Description, error) {
	if known, ok := t.Known(); ok {
		return known, nil
	}
	op := "read MCP tool " + t.to.Tool
	one, err := t.server.acquire(ctx, op)
	if err != nil {
		return tools.Description{}, err
	}
	defer func() { t.server.release(one, one.alive()) }()
	pin, err := t.findTool(ctx, op, one)
	if err != nil {
		return tools.Description{}, err
	}
	return t.description(pin), nil
}

// description returns what is known of the tool. Version is its digest, to pin it by.
func (t *Tool) description(pin *pinned) tools.Description {
	d := tools.Description{Text: pin.text, Input: pin.described.input, Output: pin.described.output, Version: pin.digest, Unchecked: pin.unchecked}
	if t.server.to.TrustAnnotations {
		switch {
		case pin.readOnly:
			d.Effect = string(events.EffectNone)
		case pin.idempotent:
			d.Effect = string(events.EffectIdempotent)
		}
	}
	return d
}

// typoRule is how far a name may be from the one that was typoRule.
var typoRule = nearest.Rule{Edits: func(_, _ string) int { return 2 }} //nolint:gochecknoglobals // a rule

// findTool returns the tool if it is still the one that was read first, or that the manifest pins.
func (t *Tool) findTool(ctx context.Context, op string, one *session) (*pinned, error) {
	found, err := one.find(ctx, t.to.Tool)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, tools.Ended(ctx, op, "while the tools of the server were read; the tool was not entered")
	case err != nil:
		return nil, tools.Retryable(failf(events.CodeToolError, op, "MCP server %s cannot be used: %s; the tool was not entered",
			t.server.to.Name, one.explain(err)))
	case found == nil:
		text := fmt.Sprintf("MCP server %s has no tool %q", t.server.to.Name, t.to.Tool)
		if near := nearest.Of(t.to.Tool, one.names(), typoRule); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, failf(events.CodeUnknownTool, op, "%s", text)
	case t.to.Digest != "" && found.digest != t.to.Digest:
		return nil, failf(events.CodeToolError, op, "the tool is not the one that the manifest pins: its digest is %s, not %s; "+
			"review the change, then pin it again", found.digest, t.to.Digest)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pin == nil {
		t.pin = newPinned(t.to.Tool, found)
		if len(t.pin.unchecked) > 0 {
			t.server.log.Warn("rules of a tool's schemas are left to its server", "tool", t.to.Tool, "rules", t.pin.unchecked)
		}
	}
	if t.pin.digest != found.digest {
		return nil, failf(events.CodeToolError, op, "the server has changed the tool since it was read (digest %s, now %s): it is refused until it is re-read; "+
			"review the change, then pin the new digest in the manifest, or restart the worker", t.pin.digest, found.digest)
	}
	return t.pin, nil
}

func newPinned(name string, d *described) *pinned {
	pin := &pinned{described: d}
	var in, out []model.Problem
	if d.input != nil {
		pin.input, in = model.CompileExternal(name, d.input)
	}
	if d.output != nil {
		pin.output, out = model.CompileExternalValue(name, d.output)
	}
	for _, p := range in {
		pin.unchecked = append(pin.unchecked, "input "+p.Place())
	}
	for _, p := range out {
		pin.unchecked = append(pin.unchecked, "output "+p.Place())
	}
	return pin
}

// Invoke implements [tools.Invoker]. A server may ask instead of answering: then the call is
// repeated with the answers, and a run that continues the turn later repeats it, too.
func (t *Tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	op := "call MCP tool " + t.to.Tool
	if ctx.Err() != nil {
		return tools.Result{}, tools.Ended(ctx, op, "before the call; the tool was not entered")
	}
	t.mu.Lock()
	pin := t.pin
	t.mu.Unlock()
	if pin != nil { // no session is needed to refuse them
		if _, err := call.ArgsFor(op, pin.input); err != nil {
			return tools.Result{}, err
		}
	}
	asked, err := resumed(ctx, call)
	if err != nil {
		return tools.Result{}, err
	}
	for {
		var answers mcp.InputResponseMap
		if asked != nil {
			if answers, err = asked.answers(ctx, op, call.Host); err != nil {
				return tools.Result{}, err
			}
		}
		u, pin, r, err := t.send(ctx, op, call, asked, answers)
		switch {
		case err != nil:
			return tools.Result{}, err
		case !r.NeedsInput():
			return t.result(u, pin, r)
		}
		if asked, err = u.next(ctx, asked, pin, r); err != nil {
			return tools.Result{}, err
		}
	}
}
