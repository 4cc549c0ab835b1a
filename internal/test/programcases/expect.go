package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Observed is what a case did, as seen from outside.
type Observed struct {
	Response map[string]any // the turn's tool_response, nil if there is none
	Rejected bool           // the claim was
	Events   []Event        // public records of the turn in order, without ask and ack
	Records  int            // all records of the turn, public and private
	Takeover int
	Ended    int // tool_response records of the turn's own call
	Entries  []Entry
	AICalls  map[string]int      // by plan, respond
	AISaw    map[string][]string // what each call of the model got
	States   []string
	Asked    []string       // ids of questions
	AskCount map[string]int // ask records by id
	Parked   bool
	Context  map[string]any
	Live     []any
	Dead     []any
	Metrics  string
	Remote   map[string]any // response of the turn that a tool has published
	Check    map[string]any
	Took     time.Duration
}

// Event is a public record: its kind, the id of its call without the id of the turn, and its data.
type Event struct {
	Kind, Call string
	Data       map[string]any
}

// Entry is one time that a tool was entered.
type Entry struct {
	Call, Tool string
	Args       any
	Key        string // idempotency key
	Token      uint64 // fencing token
	From, To   time.Time
}

// check compares what was seen with one expectation of a case; "" if it is met.
type check func(o *Observed, want any, asis bool) string

// checks are all expectations that a case may have.
var checks = map[string]check{ //nolint:gochecknoglobals // a table
	"status": func(o *Observed, want any, _ bool) string { return equal("status", want, o.payload()["status"]) },
	"response": func(o *Observed, want any, asis bool) string {
		return difference("response", want, anyOf(o.Response), false, asis)
	},
	"rejected":             func(o *Observed, want any, _ bool) string { return equal("rejected", want, o.Rejected) },
	"results":              payloadKey("results"),
	"skipped":              payloadKey("skipped"),
	"halted":               payloadKey("halted"),
	"halt_reason_contains": payloadContains("halt_reason"),
	"success":              payloadKey("success"),
	"steps":                payloadKey("steps"),
	"bindings":             exactPayloadKey("bindings"),
	"step_errors":          stepErrors,
	"errors":               invalidErrors,
	"reason":               payloadKey("reason"),
	"feedback_contains":    payloadContains("feedback"),
	"calls":                calls(func(n, want int) bool { return n == want }),
	"calls_at_least":       calls(func(n, want int) bool { return n >= want }),
	"calls_at_most":        calls(func(n, want int) bool { return n <= want }),
	"order":                order,
	"args":                 args,
	"peak":                 peak,
	"events":               eventList(func(all []any, _ int) []any { return all }, true),
	"events_unordered":     eventList(func(all []any, _ int) []any { return all }, false),
	"events_first":         eventList(func(all []any, n int) []any { return all[:min(n, len(all))] }, true),
	"events_last":          eventList(func(all []any, n int) []any { return all[max(0, len(all)-n):] }, true),
	"event_fields":         eventFields,
	"absent":               absent,
	"responses":            func(o *Observed, want any, _ bool) string { return equal("responses", want, o.Ended) },
	"takeovers":            func(o *Observed, want any, _ bool) string { return equal("takeovers", want, o.Takeover) },
	"journal_records":      func(o *Observed, want any, _ bool) string { return equal("journal_records", want, o.Records) },
	"ai_calls":             aiCalls,
	"planner_saw":          saw("plan", 0, true),
	"planner_saw_second":   saw("plan", 1, true),
	"planner_system_lacks": saw("plan_system", 0, false),
	"respond_saw":          saw("respond", 0, true),
	"states":               func(o *Observed, want any, _ bool) string { return equal("states", want, o.States) },
	"same_idempotency_key": sameKey,
	"rising_fencing_token": risingToken,
	"asked":                asked,
	"asked_once":           askedOnce,
	"parked":               func(o *Observed, want any, _ bool) string { return equal("parked", want, o.Parked) },
	"artifacts":            artifacts,
	"context": func(o *Observed, want any, asis bool) string {
		return difference("context", want, anyOf(o.Context), false, asis)
	},
	"live":         containsAll("live", func(o *Observed) []any { return o.Live }),
	"dead_letters": containsAll("dead_letters", func(o *Observed) []any { return o.Dead }),
	"metrics":      metrics(true),
	"metrics_lack": metrics(false),
	"remote_response": func(o *Observed, want any, asis bool) string {
		return difference("remote_response", want, anyOf(o.Remote), false, asis)
	},
	"check": func(o *Observed, want any, asis bool) string {
		return difference("check", want, anyOf(o.Check), false, asis)
	},
	"duration_ms":        duration,
	"numbers_as_written": func(*Observed, any, bool) string { return "" },
}

// verify returns what is not as a case expects.
func (o *Observed) verify(expect map[string]any) (failures []string) {
	asis, _ := expect["numbers_as_written"].(bool)
	for _, key := range keys(expect) {
		check, known := checks[key]
		if !known {
			failures = append(failures, "unknown expectation "+key)
			continue
		}
		if failure := check(o, expect[key], asis); failure != "" {
			failures = append(failures, failure)
		}
	}
	if failure := o.unnamed(expect); failure != "" {
		failures = append(failures, failure)
	}
	return failures
}

// payload returns the payload of the response; of a check, its result.
func (o *Observed) payload() map[string]any {
	if o.Check != nil {
		return o.Check
	}
	payload, _ := o.Response["payload"].(map[string]any)
	return payload
}

func anyOf(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

func equal(path string, want, got any) string { return difference(path, want, tree(got), true, false) }

func payloadKey(key string) check {
	return func(o *Observed, want any, asis bool) string {
		return difference(key, want, o.payload()[key], false, asis)
	}
}

func exactPayloadKey(key string) check {
	return func(o *Observed, want any, asis bool) string {
		return difference(key, want, o.payload()[key], true, asis)
	}
}

func payloadContains(key string) check {
	return func(o *Observed, want any, _ bool) string {
		got := fmt.Sprint(o.payload()[key])
		for _, part := range texts(want) {
			if !strings.Contains(got, part) {
				return fmt.Sprintf("%s: %q, expected to contain %q", key, got, part)
			}
		}
		return ""
	}
}

// texts returns one text or a list of texts.
func texts(v any) (list []string) {
	if items, ok := v.([]any); ok {
		for _, item := range items {
			list = append(list, fmt.Sprint(item))
		}
		return list
	}
	return []string{fmt.Sprint(v)}
}

func stepErrors(o *Observed, want any, asis bool) string {
	return difference("errors", want, o.payload()["errors"], false, asis)
}

// invalidErrors compares the errors of a program that was not run, in any order.
func invalidErrors(o *Observed, want any, asis bool) string {
	expected, _ := want.([]any)
	got, _ := o.payload()["errors"].([]any)
	return unordered("errors", expected, got, func(want, got any) bool {
		w, _ := want.(map[string]any)
		g, _ := got.(map[string]any)
		for key, value := range w {
			switch {
			case key == "rule": // the path is compared, the rule is for the reader
				if _, hasPath := w["path"]; !hasPath && difference("", value, g[key], false, asis) != "" {
					return false
				}
			case key == "error":
				if !errorFits(value, g[key], asis) {
					return false
				}
			case difference("", value, g[key], false, asis) != "":
				return false
			}
		}
		return true
	})
}

func errorFits(want, got any, asis bool) bool {
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	for key, value := range w {
		if key == "available_fields" {
			a, b := texts(value), texts(g[key])
			slices.Sort(a)
			slices.Sort(b)
			if !slices.Equal(a, b) {
				return false
			}
			continue
		}
		if difference("", value, g[key], false, asis) != "" {
			return false
		}
	}
	return true
}
