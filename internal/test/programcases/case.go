package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Case is one case: the tools, one turn, what people and faults do to it, and what is expected.
type Case struct {
	Name  string          `json:"name"`
	About string          `json:"about"`
	Needs []string        `json:"needs"`
	Tools map[string]Tool `json:"tools"`

	Config struct {
		MaxSteps      int      `json:"max_steps"`
		MaxParallel   int      `json:"max_parallel"`
		MaxDepth      int      `json:"max_depth"`
		StepTimeoutMS int      `json:"step_timeout_ms"`
		RunTimeoutMS  int      `json:"run_timeout_ms"`
		Enabled       *bool    `json:"enabled"`
		Planner       *Enabled `json:"planner"`
		Uses          []string `json:"uses"`
		Approve       bool     `json:"approve"`
	} `json:"config"`

	Entry       string          `json:"entry"` // "", plan_ready or check
	Plan        json.RawMessage `json:"plan"`
	PlanText    string          `json:"plan_text"`
	Orchestrate json.RawMessage `json:"orchestrate"`
	Ask         string          `json:"ask"`

	Planner Script   `json:"planner"`
	Respond Script   `json:"respond"`
	People  []Person `json:"people"`
	Actions []Action `json:"actions"`
	Faults  []Fault  `json:"faults"`

	Expect map[string]any `json:"expect"`

	source []byte // of the file
}

// needs reports whether the case needs something beyond the basics.
func (c *Case) needs(what string) bool { return slices.Contains(c.Needs, what) }

// toolNames returns the names of the tools, sorted.
func (c *Case) toolNames() []string { return slices.Sorted(maps.Keys(c.Tools)) }

// Enabled is a switch.
type Enabled struct {
	Enabled bool `json:"enabled"`
}

// Tool is a tool, or an agent, which is a tool too.
type Tool struct {
	Input       json.RawMessage `json:"input_schema"`
	Output      json.RawMessage `json:"output_schema"`
	Effect      string          `json:"effect"`
	TimeoutMS   int             `json:"timeout_ms"`
	MaxAttempts int             `json:"max_attempts"`
	Guards      json.RawMessage `json:"guards"`
	Behaviour   Behaviour       `json:"behaviour"`
}

// Behaviour is what a tool does.
type Behaviour struct {
	Do        string          `json:"do"`
	Output    json.RawMessage `json:"output"`
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Retryable bool            `json:"retryable"`
	MS        int             `json:"ms"`
	Then      *Behaviour      `json:"then"`
	Of        []Behaviour     `json:"of"`
	Result    json.RawMessage `json:"result"`
	Question  json.RawMessage `json:"question"`
	Field     string          `json:"field"`
	Bytes     int             `json:"bytes"`
	With      json.RawMessage `json:"with"`
	Levels    int             `json:"levels"`
	Set       map[string]any  `json:"set"`   // of set_context
	Names     []string        `json:"names"` // of get_context
}

// Script is what a scripted model replies, one reply a call.
type Script struct {
	Replies []struct {
		JSON  json.RawMessage `json:"json"`
		Text  *string         `json:"text"`
		Error string          `json:"error"`
	} `json:"replies"`
}

// Person answers a question.
type Person struct {
	Question string          `json:"question"` // id without the id of the turn
	Answer   json.RawMessage `json:"answer"`
	When     When            `json:"when"`
	Before   map[string]any  `json:"expect_before"` // what holds until then
}

// Action is what a producer or an operator does to the turn.
type Action struct {
	When  When            `json:"when"`
	Do    string          `json:"do"` // publish_again, publish_other, cancel, change_tool
	Times int             `json:"times"`
	Plan  json.RawMessage `json:"plan"`
	Tool  string          `json:"tool"`
	To    json.RawMessage `json:"to"`
}

// When is a moment: a name (asked, parked, at_start, after_end), an event of a call, a number of open
// questions, or a time after the start.
type When struct {
	Name    string
	Event   string
	Call    string
	Asked   int
	AfterMS int
}

// UnmarshalJSON reads a name or an object.
func (w *When) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &w.Name) //nolint:wrapcheck // the caller names the file
	}
	var o struct {
		Event   string `json:"event"`
		Call    string `json:"call"`
		Asked   int    `json:"asked"`
		AfterMS int    `json:"after_ms"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return err //nolint:wrapcheck // as above
	}
	w.Event, w.Call, w.Asked, w.AfterMS = o.Event, o.Call, o.Asked, o.AfterMS
	return nil
}

// Fault is what happens to the worker or to a write.
type Fault struct {
	At    string `json:"at"`
	Call  string `json:"call"`
	Epoch int    `json:"epoch"`
	After *When  `json:"after"`
	Do    string `json:"do"` // kill, pause, drop_ack
	For   Millis `json:"for"`
}

// Millis is a time in milliseconds.
type Millis time.Duration

// UnmarshalJSON reads a number of milliseconds.
func (m *Millis) UnmarshalJSON(data []byte) error {
	var n int
	err := json.Unmarshal(data, &n)
	*m = Millis(time.Duration(n) * time.Millisecond)
	return err //nolint:wrapcheck // as above
}

// load reads the cases of folders and files, sorted by name.
func load(paths []string) (cases []Case, err error) {
	var files []string
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error { //nolint:gosec // the caller names it
			if err == nil && !d.IsDir() && filepath.Ext(name) == ".json" {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the path
		}
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		var c Case
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		c.source = data
		cases = append(cases, c)
	}
	return cases, nil
}
