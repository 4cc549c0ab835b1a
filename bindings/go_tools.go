package bindings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Tools of Go programs that are bound by options instead of a manifest. Users write these options as
// oneturn.ToolOptions, so findings and errors use its names.

// goTool begins the place of a finding about such a tool.
const goTool = "oneturn.NewTool("

// declaredBy is the place of findings about a tool that Go code declares.
func declaredBy(tool string) string { return goTool + quoted(tool) + ")" }

// goEffects are the constants of package oneturn for the effects.
const goEffects = "oneturn.Unsafe, Replay, Keyed, Idempotent or ReadOnly"

// byWorkflow checks the declarations and groups them.
func byWorkflow(all []Declaration) (map[string][]Declaration, error) {
	grouped := make(map[string][]Declaration)
	var problems []error
	for _, d := range all {
		d.Workflow, d.Agent, d.Model, d.Tool = events.Name(d.Workflow), events.Name(d.Agent), events.Name(d.Model), events.Name(d.Tool)
		if problem := d.problem(); problem != "" {
			problems = append(problems, fmt.Errorf("%s: %s", declaredBy(d.Tool), problem))
		}
		grouped[d.Workflow] = append(grouped[d.Workflow], d)
	}
	return grouped, errors.Join(problems...)
}

// problem is what makes a declaration unusable, with the fix; "" for none.
func (d *Declaration) problem() string {
	switch {
	case d.Tool == "":
		return "the tool has no name: pass one as the first argument"
	case d.Workflow == "":
		return "set ToolOptions.Workflow"
	case d.Agent == "":
		return "set ToolOptions.Agent"
	case d.Effect != "" && !slices.Contains(effects(), string(d.Effect)):
		return fmt.Sprintf("invalid ToolOptions.Effect %s: use %s", quoted(string(d.Effect)), goEffects)
	case d.Cache.TTL < 0 || d.Cache.TTL > maxTimeout:
		return fmt.Sprintf("invalid ToolOptions.CacheFor %s: use 0 to %s", d.Cache.TTL, maxTimeoutText)
	case d.Cache.Scope != "" && !slices.Contains(scopes(), string(d.Cache.Scope)):
		return fmt.Sprintf("invalid ToolOptions.CacheScope %s: use one of %s", quoted(string(d.Cache.Scope)), strings.Join(scopes(), ", "))
	case d.Cache.TTL > 0 && d.Effect != EffectNone:
		return "only results of tools without effects are cached: set ToolOptions.Effect to oneturn.ReadOnly if the tool changes nothing, or remove CacheFor"
	case slices.ContainsFunc(d.Guards, func(g guards.Guard) bool { return g == nil }):
		return "a guard is nil: remove it"
	case d.MaxAttempts < 0 || d.MaxAttempts > maxAttemptsLimit:
		return fmt.Sprintf("invalid ToolOptions.MaxAttempts %d: use 0 to %d", d.MaxAttempts, maxAttemptsLimit)
	case d.Timeout < 0 || d.Timeout > maxTimeout:
		return fmt.Sprintf("invalid ToolOptions.Timeout %s: use 0 to %s", d.Timeout, maxTimeoutText)
	case d.Limits.Output < 0:
		return fmt.Sprintf("invalid ToolOptions.Limits.Output %d: use 0 for no limit, or a number of bytes", d.Limits.Output)
	}
	for _, l := range []struct {
		name string
		target.Limit
	}{{"Tool", d.Limits.Tool}, {"Tenant", d.Limits.Tenant}} {
		if l.Concurrency < 0 {
			return fmt.Sprintf("invalid ToolOptions.Limits.%s.Concurrency %d: use 0 for no limit, or a number of calls", l.name, l.Concurrency)
		}
		if err := l.Rate.Check(); err != nil {
			return fmt.Sprintf("ToolOptions.Limits.%s.Rate: %s", l.name, err)
		}
	}
	return ""
}

// declare adds the declarations made in Go code.
func (d *parsedWorkflow) declare(all []Declaration) {
	m := d.manifest
	for _, dec := range all {
		at := place{file: declaredBy(dec.Tool)}
		t := toolEntry{
			name: dec.Tool, kind: KindGo, agents: []string{dec.Agent}, model: dec.Model, auto: true,
			component: dec.Component, mode: dec.Mode, uiTool: dec.Component != "", at: at,
			policy: policy{effect: dec.Effect, attempts: dec.MaxAttempts, timeout: dec.Timeout, at: at},
			cache:  Cache{dec.Cache.TTL, cmp.Or(dec.Cache.Scope, ScopeChat)}, cacheAt: at, limits: dec.Limits, guards: dec.Guards, registered: Registered{Input: dec.Schema, Output: dec.Output},
		}
		if dec.Schema != nil {
			if t.model == "" {
				t.model = dec.Tool
			}
			m.addModel(modelEntry{name: t.model, schema: dec.Schema, at: at})
		}
		if _, ok := m.agent(dec.Agent); !ok {
			m.agents = append(m.agents, agentEntry{name: dec.Agent, auto: true, at: at})
		}
		m.tools = append(m.tools, t)
	}
}
