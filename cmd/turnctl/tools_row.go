package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A row has what the manifests specify of a tool: the agents that call it, its place, effect, schemas, limits and
// guards; with --live also what its service or server reports. Below the table the text has the rules of each tool
// as sentences.

// toolRow is one tool of one workflow, as turnctl tools ls lists it. Its JSON shape is stable:
// fields are only added.
type toolRow struct {
	Workflow    string          `json:"workflow,omitempty"` // "" for a tool of the shared file
	Agents      []string        `json:"agents"`             // that call it with their output
	Tool        string          `json:"tool"`
	Description string          `json:"description,omitempty"`
	Kind        bindings.Kind   `json:"kind"`
	Where       whereReport     `json:"where"`
	Effect      bindings.Effect `json:"effect"`
	EffectWhy   string          `json:"effect_why"`
	Input       json.RawMessage `json:"input"`      // JSON Schema of what it takes, null if none is declared
	Output      json.RawMessage `json:"output"`     // the same of its result
	TimeoutMS   int64           `json:"timeout_ms"` // of one attempt; 0 = the worker's default
	MaxAttempts int             `json:"max_attempts"`
	Cache       *cacheReport    `json:"cache"` // null without
	Limits      *limitsReport   `json:"limits"`
	Guards      []string        `json:"guards"`
	Live        *liveReport     `json:"live,omitempty"` // with --live, of services and servers

	binding *bindings.Binding
}

type cacheReport struct {
	TTLMS int64          `json:"ttl_ms"`
	Scope bindings.Scope `json:"scope"`
}

type limitsReport struct {
	Tool        limitReport `json:"tool"`
	Tenant      limitReport `json:"tenant"`
	OutputBytes int         `json:"output_bytes"`
}

type limitReport struct {
	Concurrency int   `json:"concurrency"` // 0 = no limit
	Calls       int   `json:"calls"`       // that may begin in per_ms, 0 = no limit
	PerMS       int64 `json:"per_ms"`
	Burst       int   `json:"burst"`
}

// toolRows lists the tools of a set by workflow and name, the tools for all workflows last.
func toolRows(set *bindings.Set) []*toolRow {
	type key struct{ workflow, tool string }
	agents := map[key][]string{}
	for _, b := range set.Bindings() {
		k := key{b.Workflow, b.Tool}
		agents[k] = append(agents[k], b.Agent)
	}
	all := allTools(set)
	rows := make([]*toolRow, 0, len(all))
	for _, b := range all {
		rows = append(rows, newToolRow(b, agents[key{b.Workflow, b.Tool}]))
	}
	slices.SortStableFunc(rows, func(a, b *toolRow) int {
		return cmp.Or(cmp.Compare(orLast(a.Workflow), orLast(b.Workflow)), cmp.Compare(a.Tool, b.Tool))
	})
	return rows
}

// orLast sorts an empty name after all others.
func orLast(name string) string { return cmp.Or(name, "\U0010ffff") }

// newToolRow describes a tool that agents call.
func newToolRow(b *bindings.Binding, agents []string) *toolRow {
	r := &toolRow{
		Workflow: b.Workflow, Agents: append([]string{}, agents...), Tool: b.Tool, Description: b.Description, Kind: b.Kind, Where: whereIs(b),
		Effect: b.Effect, EffectWhy: b.EffectWhy, Input: inputOf(b), Output: outputOf(b),
		TimeoutMS: b.Timeout.Milliseconds(), MaxAttempts: b.MaxAttempts, Guards: []string{}, binding: b,
	}
	if b.Cache.TTL > 0 {
		r.Cache = &cacheReport{b.Cache.TTL.Milliseconds(), b.Cache.Scope}
	}
	if b.Limits != (target.Limits{}) {
		r.Limits = &limitsReport{Tool: newLimit(b.Limits.Tool), Tenant: newLimit(b.Limits.Tenant), OutputBytes: b.Limits.Output}
	}
	for _, g := range b.Guards {
		if list, ok := g.(guards.Allow); ok && !slices.ContainsFunc(agents, list.Names) {
			continue // it allows all of them
		}
		text := "guard"
		if named, ok := g.(fmt.Stringer); ok {
			text = named.String()
		}
		r.Guards = append(r.Guards, text)
	}
	return r
}

func newLimit(l target.Limit) limitReport {
	return limitReport{l.Concurrency, l.Rate.Calls, l.Rate.Per.Milliseconds(), l.Rate.Burst}
}

// inputOf is the schema of the input of a tool, else of its agent's model.
func inputOf(b *bindings.Binding) json.RawMessage {
	switch {
	case b.Input != nil:
		return b.Input.JSONSchema()
	case b.Model != nil:
		return b.Model.JSONSchema()
	default:
		return nil
	}
}

func outputOf(b *bindings.Binding) json.RawMessage {
	if b.Output == nil {
		return nil
	}
	return b.Output.JSONSchema()
}

// toolsText prints tools: agents, name and place in columns, the rules below.
func toolsText(w io.Writer, rows []*toolRow) {
	if len(rows) == 0 {
		fmt.Fprintln(w, "no tools")
		return
	}
	columns := [][]string{{"workflow", "agent", "tool", "kind", "where"}}
	for _, r := range rows {
		columns = append(columns, []string{id(r.Workflow), clean(cmp.Or(strings.Join(r.Agents, ","), "-"), longestAgents), id(r.Tool), string(r.Kind), r.Where.Text})
	}
	tableWithNotes(w, columns, func(row int) {
		if row == 0 {
			return // the header
		}
		for _, line := range rows[row-1].rules() {
			fmt.Fprintln(w, wrap(line, 4))
		}
	})
}

// longestAgents bounds the names of agents in a column, in characters.
const longestAgents = 40

// rules describes the rules by which the tool runs, and its input and output.
func (r *toolRow) rules() []string {
	parts := []string{fmt.Sprintf("effect %s: %s", r.Effect, clean(r.EffectWhy, longestWhere)), plural.Of(r.MaxAttempts, "attempt")}
	if r.TimeoutMS > 0 {
		parts = append(parts, "timeout "+milli(r.TimeoutMS))
	}
	if r.Cache != nil {
		parts = append(parts, fmt.Sprintf("cache %s a %s", milli(r.Cache.TTLMS), r.Cache.Scope))
	}
	if r.Limits != nil {
		parts = append(parts, r.Limits.text())
	}
	if len(r.Guards) > 0 {
		parts = append(parts, "guards: "+clean(strings.Join(r.Guards, ", "), longestWhere))
	}
	lines := []string{strings.Join(parts, "; ")}
	if r.Input != nil || r.Output != nil {
		lines = append(lines, "takes "+shortOf(r.Input)+"; gives "+shortOf(r.Output))
	}
	if r.Live != nil {
		lines = append(lines, r.Live.text()...)
	}
	return lines
}

func shortOf(schema json.RawMessage) string {
	if schema == nil {
		return "any"
	}
	return inShort(schema)
}

// milli prints milliseconds without empty units: 5m, not 5m0s.
func milli(n int64) string { return durationText(time.Duration(n) * time.Millisecond) }

// durationText prints a duration without empty units: 168h, not 168h0m0s.
func durationText(d time.Duration) string {
	text := d.String()
	for _, empty := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(text, empty); ok {
			text = short + empty[:1]
		}
	}
	return text
}

// agoText prints a time span for people: whole days as days.
func agoText(d time.Duration) string {
	const day = 24 * time.Hour
	if d > day && d%day == 0 {
		return plural.Of(int(d/day), "day")
	}
	return durationText(d)
}

// per prints the time of a rate: s, m, or another duration.
func per(n int64) string {
	text := milli(n)
	if unit, one := strings.CutPrefix(text, "1"); one && len(unit) == 1 {
		return unit
	}
	return text
}

func (l *limitsReport) text() string {
	var parts []string
	parts = append(parts, l.Tool.text("")...)
	parts = append(parts, l.Tenant.text(" a tenant")...)
	if l.OutputBytes > 0 {
		parts = append(parts, "results up to "+bytesText(uint64(l.OutputBytes)))
	}
	return "limits: " + strings.Join(parts, ", ")
}

func (l *limitReport) text(whose string) []string {
	var parts []string
	if l.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("%d at the same time%s", l.Concurrency, whose))
	}
	if l.Calls > 0 {
		rate := fmt.Sprintf("%d/%s%s", l.Calls, per(l.PerMS), whose)
		if l.Burst > 0 {
			rate += fmt.Sprintf(" (burst %d)", l.Burst)
		}
		parts = append(parts, rate)
	}
	return parts
}
