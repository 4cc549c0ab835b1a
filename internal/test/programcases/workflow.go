package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Names in the workflow of a case.
const (
	workflowName = "Case"
	callerName   = "Caller" // the agent of the turn
	plannerName  = "agent:case_planner"
	responderTag = "agent:case_responder"

	planTool        = "run_plan"
	orchestrateTool = "cp__agent_orchestrate"
)

// counterparts are the addresses of servers that tools of a case call.
type counterparts struct {
	Models string // of the scripted models, without a path
	MCP    string // of the MCP server, "" if no tool of the case is on one
}

// program returns the name of the tool that runs the program of the turn.
func (c *Case) program() string {
	if c.Orchestrate != nil || c.Ask != "" && c.askedForOrchestration() {
		return orchestrateTool
	}
	return planTool
}

// askedForOrchestration reports whether the program of a request is an orchestration: replies with steps are.
func (c *Case) askedForOrchestration() bool {
	for _, r := range c.Planner.Replies {
		var plan struct {
			Steps json.RawMessage `json:"steps"`
		}
		if json.Unmarshal(r.JSON, &plan) == nil && plan.Steps != nil {
			return true
		}
	}
	return false
}

// writeWorkflow writes the workflow of a case below folder.
func (c *Case) writeWorkflow(folder string, to counterparts) error {
	manifest, err := json.MarshalIndent(c.manifest(to), "", "  ")
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	dir := filepath.Join(folder, workflowName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	// A worker that watches the folder must not read half of a file.
	next := filepath.Join(folder, "next")
	if err := os.WriteFile(next, manifest, 0o600); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if err := os.Rename(next, filepath.Join(dir, "oneturn.yaml")); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return nil
}

// manifest returns the oneturn.yaml of a case as JSON, which is YAML too.
func (c *Case) manifest(to counterparts) map[string]any {
	uses := []string{}
	tools := []any{}
	programs := []string{c.program()}
	m := map[string]any{"agents": map[string]any{callerName: nil}}
	for _, name := range c.toolNames() {
		uses = append(uses, name)
		t := c.Tools[name]
		switch {
		case t.Behaviour.Do == "builtin":
			if name != c.program() {
				programs = append(programs, name)
			}
		case t.onMCP():
			tools = append(tools, t.entry(name, "mcp"))
			m["servers"] = map[string]any{mcpServerName: map[string]any{
				"url": to.MCP, "allow_http": true, "allow_private": []string{"127.0.0.0/8"},
			}}
		default:
			tools = append(tools, t.entry(name, "go"))
		}
	}
	if c.Config.Uses != nil {
		uses = c.Config.Uses
	}
	for i, name := range programs {
		tools = append(tools, c.programEntry(name, uses, i == 0))
	}
	for _, name := range []string{plannerName, responderTag} {
		tools = append(tools, map[string]any{
			"name": name, "auto": false, "kind": "agent", "completion": map[string]any{
				"url": to.Models + modelPath(name), "model": "scripted", "allow_http": true, "allow_private": []string{"127.0.0.0/8"},
			},
		})
	}
	m["tools"] = tools
	return m
}

// programEntry returns the entry of a tool that runs programs; only the outermost is bound to the agent of the turn.
func (c *Case) programEntry(name string, uses []string, outermost bool) map[string]any {
	entry := map[string]any{"name": name, "kind": "plan", "uses": uses}
	limits := map[string]any{}
	set := func(key string, n int) {
		if n > 0 {
			limits[key] = n
		}
	}
	if name == orchestrateTool {
		entry["kind"] = "orchestrate"
		set("steps", c.Config.MaxSteps)
	} else {
		set("calls", c.Config.MaxSteps)
	}
	set("parallel", c.Config.MaxParallel)
	set("depth", c.Config.MaxDepth)
	for key, ms := range map[string]int{"step_timeout": c.Config.StepTimeoutMS, "timeout": c.Config.RunTimeoutMS} {
		if ms > 0 {
			limits[key] = millis(ms)
		}
	}
	if len(limits) > 0 {
		entry["program"] = limits
	}
	if c.Config.Enabled != nil {
		entry["enabled"] = *c.Config.Enabled
	}
	if !outermost {
		entry["auto"] = false
		return entry
	}
	entry["agent"] = callerName
	if c.Config.Approve {
		entry["approve"] = true
	}
	if c.needs("planner") && (c.Config.Planner == nil || c.Config.Planner.Enabled) {
		entry["planner"] = plannerName
	}
	if c.needs("respond") {
		entry["respond"] = responderTag
	}
	return entry
}

// entry returns the entry of a tool that steps call.
func (t *Tool) entry(name, kind string) map[string]any {
	entry := map[string]any{"name": name, "kind": kind, "auto": false}
	if t.Effect != "" {
		entry["effect"] = t.Effect
	}
	for key, schema := range map[string]json.RawMessage{"input": t.Input, "output": t.Output, "guards": t.Guards} {
		if schema != nil {
			entry[key] = schema
		}
	}
	if t.TimeoutMS > 0 {
		entry["timeout"] = millis(t.TimeoutMS)
	}
	if t.MaxAttempts > 0 {
		entry["max_attempts"] = t.MaxAttempts
	}
	if kind == "mcp" {
		entry["mcp"] = map[string]any{"server": mcpServerName}
	}
	return entry
}

// onMCP reports whether the tool is one of an MCP server.
func (t *Tool) onMCP() bool { return t.Behaviour.Do == "mcp" }

// millis writes milliseconds as a duration of a manifest.
func millis(ms int) string { return (time.Duration(ms) * time.Millisecond).String() }
