package variables_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/variables"
)

// contextCase is a line of testdata/agent-messages/context.jsonl.
type contextCase struct {
	Name        string            `json:"name"`
	Files       json.RawMessage   `json:"files"`
	Env         map[string]string `json:"env"`
	AllowEnv    []string          `json:"allow_env"`
	Given       json.RawMessage   `json:"given"`
	SplitHiding bool              `json:"compat_split_hiding"`
	Steps       []contextStep     `json:"steps"`
	Expect      struct {
		Start       json.RawMessage `json:"start"`
		Steps       []stepOutcome   `json:"steps"`
		End         json.RawMessage `json:"end"`
		Absent      []string        `json:"absent"`
		Diagnostics []string        `json:"diagnostics"`
	} `json:"expect"`
}

type contextStep struct {
	Message *struct {
		ID       string          `json:"id"`
		Agent    string          `json:"agent"`
		Content  string          `json:"content"`
		Chat     string          `json:"chat_id"`
		Snapshot json.RawMessage `json:"context_variables"`
	} `json:"message"`
	Answer *struct {
		Component string          `json:"component"`
		Function  string          `json:"function"`
		Response  json.RawMessage `json:"response"`
		Secret    bool            `json:"secret"`
	} `json:"answer"`
	Sets    json.RawMessage `json:"tool_sets"`
	Removes []string        `json:"tool_removes"`
}

type stepOutcome struct {
	Hidden    bool `json:"hidden"`
	Duplicate bool `json:"duplicate"`
	Updates   []struct {
		Variable string          `json:"variable"`
		Value    json.RawMessage `json:"value"`
	} `json:"updates"`
}

// memory has documents in a map.
type memory struct {
	data map[string][]byte
	rev  map[string]uint64
}

func (m *memory) Read(_ context.Context, key string) ([]byte, uint64, error) {
	return m.data[key], m.rev[key], nil
}

func (m *memory) Write(_ context.Context, key string, data []byte, revision uint64) (uint64, error) {
	if m.rev[key] != revision {
		return 0, jetstream.ErrKeyExists
	}
	m.data[key], m.rev[key] = slices.Clone(data), revision+1
	return revision + 1, nil
}

func (*memory) Name() string { return "memory" }

func (*memory) Limit() int { return 1 << 20 }

// chats plays the steps of a case.
type chats struct {
	t       *testing.T
	set     *bindings.Set
	vars    *variables.Variables
	given   map[string]any
	chat    string
	seq     uint64
	handled map[string]bool
	seen    map[string]any // the newest snapshot of the chat
}

func (c *chats) layers() variables.Layers {
	chat := bindings.Chat{App: "a1", ID: c.chat, Workflow: "W", User: "u1", Given: c.given}
	return variables.Layers{Start: c.set.StartValues("W", &chat), Snapshot: c.seen}
}

// values are what tools and conditions see.
func (c *chats) values() map[string]any {
	c.t.Helper()
	values, err := c.vars.Load(c.t.Context(), "a1", c.chat, c.layers())
	require.NoError(c.t, err)
	maps.Copy(values, (&bindings.Chat{App: "a1", ID: c.chat, Workflow: "W", User: "u1"}).Values())
	return values
}

func (c *chats) apply(steps []bindings.Step) []bindings.Update {
	c.t.Helper()
	c.seq++
	m := variables.Message{ID: strconv.FormatUint(c.seq, 10), Seq: c.seq, Agent: "A", Below: c.layers(), Steps: steps}
	applied, err := c.vars.Apply(c.t.Context(), "a1", c.chat, m)
	require.NoError(c.t, err)
	again, err := c.vars.Apply(c.t.Context(), "a1", c.chat, m)
	require.NoError(c.t, err)
	require.Equal(c.t, applied, again, "what was decided stays")
	return applied.Updates
}

// step returns the outcome of a step as the cases have it.
func (c *chats) step(s *contextStep) (hidden, duplicate bool, updates []bindings.Update) {
	c.t.Helper()
	rules := c.set.Rules("W")
	switch {
	case s.Message != nil:
		chat := s.Message.Chat
		if chat == "" {
			chat = "c1"
		}
		if chat != c.chat {
			c.seen = nil
		}
		c.chat = chat
		id := c.chat + " " + s.Message.ID
		if c.handled[id] {
			return false, true, nil
		}
		c.handled[id] = true
		if s.Message.Snapshot != nil {
			c.seen = object(c.t, s.Message.Snapshot)
		}
		effects := rules.Text(s.Message.Agent, s.Message.Content)
		return effects.Hidden, false, c.apply(stored(c.t, effects.Steps))
	case s.Answer != nil:
		response, err := events.Decode(s.Answer.Response)
		require.NoError(c.t, err)
		return false, false, c.apply(rules.Answer(bindings.Answer{
			Names: []string{s.Answer.Component, s.Answer.Function}, Response: response, Secret: s.Answer.Secret,
		}))
	}
	before := c.values()
	c.seq++
	delta := variables.Delta{Set: map[string]any{}, Remove: s.Removes}
	if s.Sets != nil {
		delta.Set = object(c.t, s.Sets)
	}
	require.NoError(c.t, c.vars.Merge(c.t.Context(), "a1", c.chat, c.seq, delta))
	after := c.values()
	for _, name := range delta.Names() {
		if !model.Equal(before[name], after[name]) {
			updates = append(updates, bindings.Update{Variable: name, Value: after[name]})
		}
	}
	return false, false, updates
}

// stored returns steps as a record of a message has them.
func stored(t *testing.T, steps []bindings.Step) []bindings.Step {
	t.Helper()
	data, err := json.Marshal(steps)
	require.NoError(t, err)
	var back []bindings.Step
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&back))
	return back
}

func object(t *testing.T, data []byte) map[string]any {
	t.Helper()
	if data == nil {
		return nil
	}
	tree, err := events.Decode(data)
	require.NoError(t, err)
	o, ok := tree.(map[string]any)
	require.True(t, ok)
	return o
}

// write creates the files of a case: the first is the manifest of the workflow, others are relative to the folder that
// holds the workflows. It returns the folder of the workflows.
func (c *contextCase) write(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	workflow := filepath.Join(base, "workflows", "W")
	require.NoError(t, os.MkdirAll(workflow, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(workflow, "agents.yaml"), []byte("agents: {}\n"), 0o600))
	if c.SplitHiding {
		require.NoError(t, os.WriteFile(filepath.Join(workflow, "oneturn.yaml"), []byte("compat: {split_hiding: true}\n"), 0o600))
	}
	d := json.NewDecoder(bytes.NewReader(c.Files))
	_, err := d.Token()
	require.NoError(t, err)
	for first := true; d.More(); first = false {
		name, err := d.Token()
		require.NoError(t, err)
		var content json.RawMessage
		require.NoError(t, d.Decode(&content))
		text := string(content)
		if strings.HasPrefix(text, `"`) {
			require.NoError(t, json.Unmarshal(content, &text))
		}
		path, ok := name.(string)
		require.True(t, ok)
		if first {
			path = filepath.Join("workflows", "W", path)
		}
		path = filepath.Join(base, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return filepath.Join(base, "workflows")
}

func same(t *testing.T, want json.RawMessage, got any, what string) {
	t.Helper()
	value, err := events.Decode(want)
	require.NoError(t, err)
	require.True(t, model.Equal(value, got), "%s: want %s, got %v", what, want, got)
}

func contains(t *testing.T, want json.RawMessage, values map[string]any, what string) {
	t.Helper()
	for name := range object(t, want) {
		var all map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(want, &all))
		require.Contains(t, values, name, what)
		same(t, all[name], values[name], what+" "+name)
	}
}

func TestContextCasesHaveTheirValuesAndUpdates(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../testdata/agent-messages/context.jsonl")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(data)) {
		var c contextCase
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		n++
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
	require.Equal(t, 105, n)
}

func (c *contextCase) run(t *testing.T) {
	t.Helper()
	set, err := bindings.Load(t.Context(), bindings.Options{Root: c.write(t), Variables: bindings.VariableSources{
		Env: c.AllowEnv, Lookup: func(name string) (string, bool) { v, ok := c.Env[name]; return v, ok },
	}})
	require.NoError(t, err)
	for _, code := range c.Expect.Diagnostics {
		require.True(t, slices.ContainsFunc(set.Diagnostics(), func(d bindings.Diagnostic) bool { return d.Code == code }), "%s in %v", code, set.Diagnostics())
	}
	play := &chats{
		t: t, set: set, given: object(t, c.Given), chat: "c1", handled: map[string]bool{},
		vars: variables.NewIn(&memory{map[string][]byte{}, map[string]uint64{}}),
	}
	start := play.values()
	contains(t, c.Expect.Start, start, "start")
	for _, name := range c.Expect.Absent {
		require.NotContains(t, start, name)
	}
	for i := range c.Steps {
		want := &c.Expect.Steps[i]
		hidden, duplicate, updates := play.step(&c.Steps[i])
		require.Equal(t, want.Duplicate, duplicate)
		require.Equal(t, want.Hidden, hidden, "hidden")
		require.Len(t, updates, len(want.Updates))
		for j, u := range want.Updates {
			require.Equal(t, u.Variable, updates[j].Variable)
			same(t, u.Value, updates[j].Value, u.Variable)
		}
	}
	if c.Expect.End != nil {
		contains(t, c.Expect.End, play.values(), "end")
	}
}
