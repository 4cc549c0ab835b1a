package main

import (
	"fmt"
	"slices"
	"strings"
)

// Expectations about events, questions, calls of models, metrics and times.

// eventList compares the kinds and calls of events.
func eventList(part func(all []any, n int) []any, ordered bool) check {
	return func(o *Observed, want any, _ bool) string {
		expected, _ := want.([]any)
		all := make([]any, 0, len(o.Events))
		for _, e := range o.Events {
			all = append(all, []any{e.Kind, e.Call})
		}
		got := part(all, len(expected))
		if ordered {
			return difference("events", want, got, true, false)
		}
		return unordered("events", expected, got, func(w, g any) bool { return difference("", w, g, true, false) == "" })
	}
}

func eventFields(o *Observed, want any, asis bool) string {
	expected, _ := want.(map[string]any)
	for _, name := range keys(expected) {
		kind, call, _ := strings.Cut(name, " ")
		i := slices.IndexFunc(o.Events, func(e Event) bool { return e.Kind == kind && e.Call == call })
		if i < 0 {
			return "event_fields: no event " + name
		}
		if d := difference(name, expected[name], anyOf(o.Events[i].Data), false, asis); d != "" {
			return d
		}
	}
	return ""
}

func absent(o *Observed, want any, _ bool) string {
	for _, call := range texts(want) {
		if slices.ContainsFunc(o.Events, func(e Event) bool { return e.Call == call }) {
			return "absent: call " + call + " has a record"
		}
	}
	return ""
}

func aiCalls(o *Observed, want any, _ bool) string {
	expected, _ := want.(map[string]any)
	for _, model := range keys(expected) {
		if n := number(expected[model]); o.AICalls[model] != n {
			return fmt.Sprintf("ai_calls: %s was called %d times, expected %d", model, o.AICalls[model], n)
		}
	}
	return ""
}

// saw looks for texts in what the n-th call of a model got.
func saw(model string, n int, there bool) check {
	return func(o *Observed, want any, _ bool) string {
		got := ""
		if all := o.AISaw[model]; n < len(all) {
			got = all[n]
		}
		for _, part := range texts(want) {
			if strings.Contains(got, part) != there {
				return fmt.Sprintf("%s call %d: contains %q is %v, got %q", model, n, part, !there, got)
			}
		}
		return ""
	}
}

func asked(o *Observed, want any, _ bool) string {
	expected, _ := want.([]any)
	got := make([]any, 0, len(o.Asked))
	for _, id := range o.Asked {
		got = append(got, id)
	}
	if d := unordered("asked", expected, got, func(w, g any) bool { return w == g }); d != "" {
		return d
	}
	return askedOnce(o, true, false)
}

func askedOnce(o *Observed, _ any, _ bool) string {
	for id, n := range o.AskCount {
		if n != 1 {
			return fmt.Sprintf("asked: question %s has %d records", id, n)
		}
	}
	return ""
}

// artifacts compares the artifact and skill ids of responses of calls.
func artifacts(o *Observed, want any, asis bool) string {
	expected, _ := want.([]any)
	for _, item := range expected {
		w, _ := item.(map[string]any)
		call := "#" + fmt.Sprint(w["call"])
		i := slices.IndexFunc(o.Events, func(e Event) bool { return e.Kind == "tool_response" && e.Call == call })
		if i < 0 {
			return "artifacts: call " + call + " has no response"
		}
		for _, key := range []string{"artifact_id", "skill_id"} {
			if d := difference(call+"."+key, w[key], o.Events[i].Data[key], true, asis); d != "" {
				return d
			}
		}
	}
	return ""
}

func containsAll(name string, of func(*Observed) []any) check {
	return func(o *Observed, want any, asis bool) string {
		expected, _ := want.([]any)
		for _, w := range expected {
			if !slices.ContainsFunc(of(o), func(g any) bool { return difference("", w, g, false, asis) == "" }) {
				return fmt.Sprintf("%s: expected %s among %s", name, text(w), text(of(o)))
			}
		}
		return ""
	}
}

func metrics(there bool) check {
	return func(o *Observed, want any, _ bool) string {
		for _, part := range texts(want) {
			if strings.Contains(o.Metrics, part) != there {
				return fmt.Sprintf("metrics: contains %q is %v", part, !there)
			}
		}
		return ""
	}
}

func duration(o *Observed, want any, _ bool) string {
	bounds, _ := want.(map[string]any)
	took := int(o.Took.Milliseconds())
	if least, ok := bounds["min"]; ok && took < number(least) {
		return fmt.Sprintf("duration_ms: %d, expected at least %d", took, number(least))
	}
	if most, ok := bounds["max"]; ok && took > number(most) {
		return fmt.Sprintf("duration_ms: %d, expected at most %d", took, number(most))
	}
	return ""
}
