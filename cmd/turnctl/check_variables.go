package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

// The context variables of a workflow in the report: what each starts with, and what its triggers do.

// variableReport is a context variable. Its JSON shape is stable: fields are only added.
type variableReport struct {
	Name     string              `json:"name"`
	Type     string              `json:"type,omitempty"`
	Source   bindings.SourceType `json:"source"`
	Start    json.RawMessage     `json:"start,omitempty"`     // not of config and file: it may be private
	HasValue bool                `json:"has_value,omitempty"` // of config and file: the start value is not null
	Tool     string              `json:"tool,omitempty"`      // reads it
	Agents   []string            `json:"agents,omitempty"`
	Triggers []triggerReport     `json:"triggers"`
}

// triggerReport is a trigger, and in Means what it does.
type triggerReport struct {
	Type        bindings.TriggerType `json:"type"`
	Agent       string               `json:"agent,omitempty"`
	Match       bindings.MatchKind   `json:"match,omitempty"`
	Patterns    []string             `json:"patterns,omitempty"`
	UIHidden    bool                 `json:"ui_hidden,omitempty"`
	Tool        string               `json:"tool,omitempty"`
	ResponseKey string               `json:"response_key,omitempty"`
	From        json.RawMessage      `json:"from,omitempty"`
	To          json.RawMessage      `json:"to,omitempty"`
	Means       string               `json:"means"`
}

// reportVariables returns the variables of a workflow in the order of the manifest.
func reportVariables(set *bindings.Set, workflow string) []variableReport {
	declared := set.Variables(workflow)
	all := make([]variableReport, 0, len(declared))
	for _, v := range declared {
		r := variableReport{Name: v.Name, Type: v.Type, Source: v.Source.Type, Tool: v.Tool, Agents: v.Agents, Triggers: []triggerReport{}}
		if v.Source.Type == bindings.SourceConfig || v.Source.Type == bindings.SourceFile {
			r.HasValue = v.Start != nil
		} else {
			r.Start = jsonValue(v.Start)
		}
		for _, t := range v.Triggers {
			trigger := triggerReport{
				Type: t.Type, Agent: t.Agent, Match: t.Match, Patterns: t.Patterns, UIHidden: t.UIHidden, Tool: t.Tool, ResponseKey: t.ResponseKey,
				Means: meaning(&t),
			}
			if t.From != nil {
				trigger.From = jsonValue(t.From)
			}
			if t.Value != nil {
				trigger.To = jsonValue(t.Value)
			}
			r.Triggers = append(r.Triggers, trigger)
		}
		all = append(all, r)
	}
	return all
}

// jsonValue encodes a value tree.
func jsonValue(value any) json.RawMessage {
	data, err := events.AppendJSON(nil, value)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}

// meaning describes a trigger.
func meaning(t *bindings.Trigger) string {
	var parts []string
	if t.Type == bindings.TriggerUIResponse {
		parts = append(parts, "an answer to "+id(t.Tool))
		if t.ResponseKey != "" {
			parts = append(parts, "that has "+id(t.ResponseKey))
		}
	} else {
		agent := "any agent"
		if t.Agent != "" {
			agent = id(t.Agent)
		}
		verb := map[bindings.MatchKind]string{bindings.MatchEquals: "is", bindings.MatchContains: "contains", bindings.MatchRegex: "matches"}[t.Match]
		quoted := make([]string, len(t.Patterns))
		for i, p := range t.Patterns {
			quoted[i] = fmt.Sprintf("%.80q", p)
		}
		parts = append(parts, "a text of "+agent+" that "+verb+" "+strings.Join(quoted, " or "))
	}
	if t.From != nil {
		parts = append(parts, "while it is "+short(jsonValue(t.From)))
	}
	if t.Value != nil {
		parts = append(parts, "sets "+short(jsonValue(t.Value)))
	} else {
		parts = append(parts, "sets that value")
	}
	if t.UIHidden {
		parts = append(parts, "and is hidden from people")
	}
	return strings.Join(parts, " ")
}

// short is a value for a line.
func short(data json.RawMessage) string { return clean(string(data), 60) }

// variablesText prints variables with their triggers.
func variablesText(w io.Writer, all []variableReport) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "  context variables")
	for _, v := range all {
		fmt.Fprintln(w, wrap(id(v.Name)+": "+v.how(), 6))
		for _, t := range v.Triggers {
			fmt.Fprintln(w, wrap(t.Means, 10))
		}
	}
}

// how describes what a variable starts with.
func (v *variableReport) how() string {
	parts := []string{string(v.Source)}
	if v.Type != "" {
		parts[0] += " " + clean(v.Type, 40)
	}
	switch {
	case v.Tool != "":
		parts = append(parts, "read by "+id(v.Tool))
	case v.HasValue:
		parts = append(parts, "has a value")
	case v.Start == nil:
		parts = append(parts, "starts as null")
	default:
		parts = append(parts, "starts as "+short(v.Start))
	}
	if len(v.Agents) > 0 {
		parts = append(parts, "for "+clean(strings.Join(v.Agents, ", "), 200))
	}
	return strings.Join(parts, ", ")
}
