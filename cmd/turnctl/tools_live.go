package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/toolbox"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A box is the toolbox of a worker for one command, connected to NATS only if a tool needs it. With it, live asks
// the services and servers of many rows at the same time what they offer; check --live reports what it learns as
// diagnostics.

// liveReport is the description of a tool by its service or server.
type liveReport struct {
	Reached     bool            `json:"reached"`
	Error       string          `json:"error,omitempty"` // why not
	Description string          `json:"description,omitempty"`
	Version     string          `json:"version,omitempty"` // of a service; the digest of an MCP tool
	Effect      string          `json:"effect,omitempty"`  // if the manifest trusts it
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
	Unchecked   []string        `json:"unchecked,omitempty"` // rules of the schemas that only the service or server checks
}

// text is the description, in lines.
func (l *liveReport) text() []string {
	if !l.Reached {
		return []string{"cannot be called now: " + clean(l.Error, 500)}
	}
	parts := []string{"available"}
	if l.Version != "" {
		parts = append(parts, "version "+clean(l.Version, longestWhere))
	}
	if l.Effect != "" {
		parts = append(parts, "effect "+id(l.Effect))
	}
	if l.Input != nil || l.Output != nil {
		parts = append(parts, "takes "+shortOf(l.Input)+", gives "+shortOf(l.Output))
	}
	return []string{strings.Join(parts, "; ")}
}

// canDescribe reports whether a tool can be asked about itself: a service or a server.
func canDescribe(b *bindings.Binding) bool {
	_, server := b.Target.(*target.MCP)
	return server || overNATS(b)
}

// overNATS reports whether a tool is reached over NATS.
func overNATS(b *bindings.Binding) bool {
	switch t := b.Target.(type) {
	case *target.NATS:
		return true
	case *target.Agent:
		return t.NATS != nil
	default:
		return false
	}
}

// box is a toolbox for one command.
type box struct {
	*toolbox.Toolbox

	unreached  error // why there is no connection to NATS, if one is needed
	disconnect func()
	logger     *slog.Logger
}

// newBox makes the toolbox of a folder, with a connection to NATS if one of the bindings needs it.
func (a *app) newBox(dir string, cfg *toolSettings, all []*bindings.Binding) *box {
	logger := cfg.Logger(a.stderr)
	b := &box{logger: logger, disconnect: func() {}}
	o := toolbox.Options{
		Python: python.Options{Root: dir, Interpreter: cfg.Python, Env: cfg.ToolEnv, Size: 1, Logger: logger},
		Logger: logger, Prefix: cfg.Prefix,
	}
	if slices.ContainsFunc(all, overNATS) {
		s, err := a.connect(&config.Turnctl{NATS: cfg.NATS, Output: cfg.Output, Timeout: connectTimeout})
		if b.unreached = err; err == nil {
			o.Conn, b.disconnect = s.nc, s.close
		}
	}
	b.Toolbox = toolbox.New(o)
	return b
}

// find returns the tool of a binding.
func (b *box) find(binding *bindings.Binding) (tools.Invoker, error) {
	if b.unreached != nil && overNATS(binding) {
		return nil, b.unreached
	}
	return b.Find(binding)
}

func (b *box) close() {
	const closeTimeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		b.logger.Warn("tools did not stop in time", "err", err)
	}
	b.disconnect()
}

// connectTimeout bounds how long it takes to reach a NATS server.
const connectTimeout = 10 * time.Second

// live asks the services and servers of rows what they offer, and returns how many did not answer.
func (a *app) live(ctx context.Context, dir string, cfg *liveSettings, rows []*toolRow) (missing int) {
	var ask []*toolRow
	var all []*bindings.Binding
	for _, r := range rows {
		if canDescribe(r.binding) {
			ask, all = append(ask, r), append(all, r.binding)
		}
	}
	if len(ask) == 0 {
		return 0
	}
	b := a.newBox(dir, &cfg.toolSettings, all)
	defer b.close()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	var describing sync.WaitGroup
	places := make(chan struct{}, maxConcurrent)
	for _, r := range ask {
		places <- struct{}{}
		describing.Go(func() {
			defer func() { <-places }()
			r.Live = b.describe(ctx, r.binding)
		})
	}
	describing.Wait()
	for _, r := range ask {
		if !r.Live.Reached {
			missing++
		}
	}
	return missing
}

// maxUnchecked bounds the list of rules that are not checked, in bytes.
const maxUnchecked = 2000

// maxConcurrent bounds how many tools are asked at the same time.
const maxConcurrent = 16

func (b *box) describe(ctx context.Context, binding *bindings.Binding) *liveReport {
	tool, err := b.find(binding)
	if err != nil {
		return &liveReport{Error: messageOf(err)}
	}
	d, ok := tool.(tools.Describer)
	if !ok {
		return &liveReport{Error: fmt.Sprintf("%s tools do not describe themselves", binding.Kind)}
	}
	description, err := d.Describe(ctx)
	if err != nil {
		return &liveReport{Error: messageOf(err)}
	}
	return &liveReport{
		Reached: true, Description: description.Text, Version: description.Version, Effect: description.Effect,
		Input: description.Input, Output: description.Output, Unchecked: description.Unchecked,
	}
}

// messageOf is the message of a coded error, without its code and operation.
func messageOf(err error) string {
	var coded *events.Error
	if errors.As(err, &coded) && coded.Msg != "" {
		return coded.Msg
	}
	return err.Error()
}

// checkLive adds the tools to a report that services and servers do not have.
func (a *app) checkLive(ctx context.Context, dir string, set *bindings.Set, cfg *checkSettings, r *report) {
	rows := toolRows(set)
	a.live(ctx, dir, &cfg.liveSettings, rows)
	for _, row := range rows {
		if row.Live == nil || row.Live.Reached && len(row.Live.Unchecked) == 0 {
			continue
		}
		found := finding(diag.SeverityWarning, row.Workflow, "tool_not_there", "start it, or correct it in the manifest",
			"tool %s cannot be called now (%s): %s", row.Tool, row.Where.Text, row.Live.Error)
		if row.Live.Reached {
			found = finding(diag.SeverityInfo, row.Workflow, "schema_unchecked", "no action needed: the service or server checks them",
				"tool %s has rules in its schemas that cannot be checked before the call: %s", row.Tool, clean(strings.Join(row.Live.Unchecked, "; "), maxUnchecked))
		}
		into := &r.Diagnostics
		for i := range r.Workflows {
			if r.Workflows[i].Name == row.Workflow {
				into = &r.Workflows[i].Diagnostics
			}
		}
		*into = append(*into, found)
		if found.Severity == diag.SeverityWarning {
			r.Warnings++
		}
	}
}
