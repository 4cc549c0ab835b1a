package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Expectations about the runs of tools: how often, in which order, how many at the same time, with which arguments and keys.

// unnamed returns a failure for a tool that was entered and that no expectation about calls names.
func (o *Observed) unnamed(expect map[string]any) string {
	named := map[string]bool{}
	for _, key := range []string{"calls", "calls_at_least", "calls_at_most"} {
		tools, given := expect[key].(map[string]any)
		if given {
			named[""] = true
		}
		for tool := range tools {
			named[tool] = true
		}
	}
	for _, e := range o.Entries {
		if named[""] && !named[e.Tool] {
			return "calls: tool " + e.Tool + " was entered, expected not to be"
		}
	}
	return ""
}

// calls compares how often each tool was entered.
func calls(fits func(n, want int) bool) check {
	return func(o *Observed, want any, _ bool) string {
		count := map[string]int{}
		for _, e := range o.Entries {
			count[e.Tool]++
		}
		expected, _ := want.(map[string]any)
		for _, tool := range keys(expected) {
			if n := number(expected[tool]); !fits(count[tool], n) {
				return fmt.Sprintf("calls: tool %s was entered %d times, expected %d", tool, count[tool], n)
			}
		}
		return ""
	}
}

func number(v any) int {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return int(i)
}

// order compares in which order calls were entered; a list inside is any order.
func order(o *Observed, want any, _ bool) string {
	entered := make([]any, 0, len(o.Entries))
	for _, e := range o.Entries {
		entered = append(entered, e.Call)
	}
	expected, _ := want.([]any)
	at := 0
	for _, item := range expected {
		group, ok := item.([]any)
		if !ok {
			group = []any{item}
		}
		end := min(at+len(group), len(entered))
		if d := unordered("order", group, entered[at:end], func(w, g any) bool { return w == g }); d != "" {
			return d + " in " + text(entered)
		}
		at = end
	}
	if at != len(entered) {
		return "order: " + text(entered) + ", expected " + text(want)
	}
	return ""
}

func args(o *Observed, want any, asis bool) string {
	expected, _ := want.(map[string]any)
	for _, call := range keys(expected) {
		i := slices.IndexFunc(o.Entries, func(e Entry) bool { return e.Call == call })
		if i < 0 {
			return "args: call " + call + " was not entered"
		}
		if d := difference("args of "+call, expected[call], o.Entries[i].Args, true, asis); d != "" {
			return d
		}
	}
	return ""
}

// peak compares how many tools were entered at the same time; * is all.
func peak(o *Observed, want any, _ bool) string {
	expected, _ := want.(map[string]any)
	for _, tool := range keys(expected) {
		most := 0
		for _, at := range o.Entries {
			n := 0
			for _, e := range o.Entries {
				if (tool == "*" || e.Tool == tool) && !e.From.After(at.From) && (e.To.IsZero() || e.To.After(at.From)) {
					n++
				}
			}
			most = max(most, n)
		}
		if n := number(expected[tool]); most != n {
			return fmt.Sprintf("peak of %s: %d, expected %d", tool, most, n)
		}
	}
	return ""
}

// entriesOf returns the times that a call was entered.
func (o *Observed) entriesOf(call string) (list []Entry) {
	for _, e := range o.Entries {
		if e.Call == call {
			list = append(list, e)
		}
	}
	return list
}

func sameKey(o *Observed, want any, _ bool) string {
	for _, call := range texts(want) {
		entries := o.entriesOf(call)
		for _, e := range entries {
			if e.Key == "" || e.Key != entries[0].Key {
				return "same_idempotency_key: call " + call + " had different keys"
			}
		}
		if len(entries) < 2 {
			return "same_idempotency_key: call " + call + " was entered once"
		}
	}
	return ""
}

func risingToken(o *Observed, want any, _ bool) string {
	for _, call := range texts(want) {
		entries := o.entriesOf(call)
		for i := 1; i < len(entries); i++ {
			if entries[i].Token <= entries[i-1].Token {
				return "rising_fencing_token: the token of call " + call + " did not rise"
			}
		}
		if len(entries) < 2 {
			return "rising_fencing_token: call " + call + " was entered once"
		}
	}
	return ""
}
