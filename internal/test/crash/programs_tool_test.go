//go:build failpoints

package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// Names in the workflow of programs, and what the steps of programs do.
const (
	planner      = "Planner" // agents: of plans, of orchestrations, of prompts
	lead         = "Lead"
	prompted     = "Prompted"
	envPrograms  = "CRASH_PROGRAMS"  // folder of that workflow
	envSignals   = "CRASH_SIGNALS"   // folder of files for which steps wait
	envSweep     = "CRASH_SWEEP"     // time between two sweeps, "" for the default
	envSoftStop  = "CRASH_SOFT_STOP" // how long tools may run on when the worker stops
	signalPeriod = 5 * time.Millisecond
)

// stepInput is what a step is to do.
type stepInput struct {
	Name   string `json:"name"`             // of the step in its program, for the files
	Value  string `json:"value,omitempty"`  // the output of an earlier step
	Millis int    `json:"millis,omitempty"` // takes so long
	Until  string `json:"until,omitempty"`  // waits for this file
	Die    int    `json:"die,omitempty"`    // kills its worker after that, in epochs up to this one
	Fail   bool   `json:"fail,omitempty"`
	Needs  string `json:"needs,omitempty"`  // fails while this file does not exist
	Ask    bool   `json:"ask,omitempty"`    // asks a person first, by its name
	Within int    `json:"within,omitempty"` // milliseconds to answer
	Large  bool   `json:"large,omitempty"`  // has an output that is stored in a blob
	Sets   string `json:"sets,omitempty"`   // sets this context variable to true
}

// stepOutput is different for each run of a step.
type stepOutput struct {
	Value string `json:"value"`
}

// stepTools returns a tool of each effect for steps.
func stepTools(ledger *oneturntest.Ledger) (list []oneturn.Tool) {
	for _, effect := range effects {
		list = append(list, oneturn.NewTool("step_"+effect, step(ledger, effect), oneturn.ToolOptions{}))
	}
	return list
}

// step is the tool: a line in the ledger, what its input has, a line in the ledger.
func step(ledger *oneturntest.Ledger, effect string) func(context.Context, stepInput) (stepOutput, error) {
	signals := os.Getenv(envSignals)
	return func(ctx context.Context, in stepInput) (out stepOutput, err error) {
		call := tool.Info(ctx)
		if err := ledger.Enter(call); err != nil {
			return out, err
		}
		if err := os.WriteFile(filepath.Join(signals, "entered-"+in.Name), nil, 0o600); err != nil {
			return out, err
		}
		failpoint.Hit(inTool, effect, subjects.TurnKey(call.App, call.Chat, call.Run, call.Turn).String())
		if in.Ask {
			if err := asksOnce(ctx, ledger, &in); err != nil {
				return out, err
			}
		}
		if err := waits(ctx, &in, signals); err != nil {
			return out, err
		}
		if call.Epoch <= in.Die {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal ends every thread
		}
		if in.Sets != "" {
			if err := tool.Vars(ctx).Set(in.Sets, true); err != nil {
				return out, err
			}
		}
		if err := ledger.Exit(call); err != nil {
			return out, err
		}
		if in.Fail {
			return out, tool.UserError("this step fails")
		}
		out.Value = fmt.Sprintf("%s of process %d in epoch %d", in.Name, os.Getpid(), call.Epoch)
		if in.Large {
			out.Value += strings.Repeat(".", 300<<10)
		}
		return out, nil
	}
}

// asksOnce asks a person, with lines in the ledger.
func asksOnce(ctx context.Context, ledger *oneturntest.Ledger, in *stepInput) error {
	call := tool.Info(ctx)
	if err := ledger.Ask(call, in.Name); err != nil {
		return err
	}
	if _, err := tool.Ask[decision](ctx, tool.Question{Tool: "Confirm", Name: in.Name, Timeout: time.Duration(in.Within) * time.Millisecond}); err != nil {
		return err
	}
	return ledger.Answered(call, in.Name)
}

// waits waits for as long as a step takes.
func waits(ctx context.Context, in *stepInput, signals string) error {
	if in.Needs != "" && !exists(filepath.Join(signals, in.Needs)) {
		return tool.UserError("this step fails")
	}
	pause(ctx, time.Duration(in.Millis)*time.Millisecond)
	for in.Until != "" && ctx.Err() == nil && !exists(filepath.Join(signals, in.Until)) {
		pause(ctx, signalPeriod)
	}
	return ctx.Err()
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// programs is what a rig has whose turns are programs.
type programs struct {
	workflows string
	signals   string
	models    *scriptedModels
	sweep     string
	softStop  string
}

// newPrograms is a rig whose turns are programs.
func newPrograms(t *testing.T, r *rig) *rig {
	t.Helper()
	p := &programs{workflows: t.TempDir(), signals: t.TempDir(), models: startModels(t), softStop: "5s"}
	reply, err := json.Marshal(threeSteps("unsafe"))
	require.NoError(t, err)
	p.models.replies["planner"] = string(reply)
	r.programs = p
	var tools []any
	uses := []string{}
	for _, effect := range effects {
		uses = append(uses, "step_"+effect)
		tools = append(tools, map[string]any{"name": "step_" + effect, "kind": "go", "auto": false, "effect": effect})
	}
	for agent, entry := range map[string]map[string]any{
		planner:  {"name": "run_plan", "kind": "plan"},
		lead:     {"name": "cp__agent_orchestrate", "kind": "orchestrate"},
		prompted: {"name": "run_prompt", "kind": "plan", "planner": "agent:planner", "respond": "agent:responder"},
	} {
		entry["agent"], entry["uses"] = agent, uses
		tools = append(tools, entry)
	}
	for _, model := range []string{"planner", "responder"} {
		tools = append(tools, map[string]any{"name": "agent:" + model, "kind": "agent", "auto": false, "completion": map[string]any{
			"url": p.models.url + "/" + model, "model": "scripted", "allow_http": true, "allow_private": []string{"127.0.0.0/8"},
		}})
	}
	manifest, err := json.Marshal(map[string]any{"agents": map[string]any{planner: nil, lead: nil, prompted: nil}, "tools": tools})
	require.NoError(t, err)
	dir := filepath.Join(p.workflows, "Crash")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), manifest, 0o600))
	return r
}

// env is the environment of workers that run programs.
func (p *programs) env() []string {
	if p == nil {
		return nil
	}
	return []string{envPrograms + "=" + p.workflows, envSignals + "=" + p.signals, envSweep + "=" + p.sweep, envSoftStop + "=" + p.softStop}
}

// configure sets what workers need to run programs.
func configure(c *oneturn.Config, ledger *oneturntest.Ledger) (err error) {
	folder := os.Getenv(envPrograms)
	if folder == "" {
		return nil
	}
	c.Workflows, c.Tools = folder, stepTools(ledger)
	var errSweep error
	if sweep := os.Getenv(envSweep); sweep != "" {
		c.SweepEvery, errSweep = time.ParseDuration(sweep)
	}
	c.SoftStop, err = time.ParseDuration(os.Getenv(envSoftStop))
	return errors.Join(err, errSweep)
}

// signal makes the file that steps wait for.
func (r *rig) signal(name string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.programs.signals, name), nil, 0o600))
}

// signalled reports whether a step has made a file.
func (r *rig) signalled(name string) bool {
	return exists(filepath.Join(r.programs.signals, name))
}

// scriptedModels are the agents that plan and respond. Each always has the same reply.
type scriptedModels struct {
	url string

	mu      sync.Mutex
	replies map[string]string
	asked   map[string]int
}

func startModels(t *testing.T) *scriptedModels {
	t.Helper()
	m := &scriptedModels{replies: map[string]string{"responder": "All is done."}, asked: map[string]int{}}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// ServeHTTP implements [http.Handler].
func (m *scriptedModels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	m.mu.Lock()
	m.asked[name]++
	reply := m.replies[name]
	m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	text, err := json.Marshal(map[string]any{"choices": []any{map[string]any{
		"message": map[string]any{"role": "assistant", "content": reply}, "finish_reason": "stop",
	}}})
	if err != nil {
		panic(err) // it holds texts only
	}
	_, _ = w.Write(text) // the caller may be gone
}

// calls returns how often a model was asked.
func (m *scriptedModels) calls(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[name]
}

// plan is a plan of steps of one effect, one after the other. Each but the first gets the output of the one before it.
func plan(effect string, steps ...stepInput) map[string]any {
	calls := make([]any, len(steps))
	for i, s := range steps {
		if i > 0 {
			s.Value = fmt.Sprintf("$%d.output.value", i-1)
		}
		s.Name = strconv.Itoa(i)
		calls[i] = map[string]any{"tool_name": "step_" + effect, "arguments": s}
	}
	return map[string]any{"type": "tool_calls", "calls": calls}
}

// threeSteps is a plan of three steps.
func threeSteps(effect string) map[string]any {
	return plan(effect, stepInput{}, stepInput{}, stepInput{})
}

// orchestration is a group of steps of one effect, two at a time, and a step that gets what the group has.
func orchestration(effect, merge string, children ...stepInput) map[string]any {
	group := make([]any, len(children))
	for i, s := range children {
		s.Name = fmt.Sprintf("g%d", i)
		group[i] = map[string]any{"agent_id": "step_" + effect, "with": s, "result_key": s.Name}
	}
	value := "{{ result.g0.value }}"
	if merge == "first_success" {
		value = "{{ result.g.value }}"
	}
	return map[string]any{"plan": map[string]any{"steps": []any{
		map[string]any{"id": "g", "parallel": map[string]any{"result_key": "g", "merge_strategy": merge, "max_concurrency": 2, "steps": group}},
		map[string]any{"id": "last", "agent": map[string]any{"agent_id": "step_" + effect, "with": stepInput{Name: "last", Value: value}}},
	}}}
}
