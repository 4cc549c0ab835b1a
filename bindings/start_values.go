package bindings

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/internal/process"
)

// The values that context variables have in a new chat. What all chats have in common is decided when the workflow is
// loaded (defaults, environment, files) and kept in [Variable.Start]; [Set.StartValues] adds what a chat has itself.
// Changes of tools and triggers are stored, and count more: see package internal/variables.

// VariableSources are where the start values of context variables may come from.
type VariableSources struct {
	// Env names the environment variables that sources of type config may read: names, or prefixes that end with a star.
	// The worker's own settings (ONETURN_*, NATS_*) are never among them. Defaults to none.
	Env []string
	// Lookup returns an environment variable. Defaults to [os.LookupEnv].
	Lookup func(name string) (string, bool)
	// Files is the folder that the files of sources of type file must be in. Defaults to the folder that holds Root.
	Files string
}

// Chat is what a chat knows from its start.
type Chat struct {
	App, ID, Workflow string
	User              string         // "" if it is not known
	Given             map[string]any // values of runtime variables by their names
}

// Values returns what every chat knows: chat_id, app_id, workflow_name and, if it is known, user_id.
func (c *Chat) Values() map[string]any {
	values := map[string]any{"chat_id": c.ID, "app_id": c.App, "workflow_name": c.Workflow}
	if c.User != "" {
		values["user_id"] = c.User
	}
	return values
}

// StartValues returns the values of the declared variables of a workflow in a new chat, nil if it declares none. Runtime
// variables have the value that the chat knows, else null. The caller must not change what is in the map.
func (s *Set) StartValues(workflow string, c *Chat) map[string]any {
	w := s.find(workflow)
	if w == nil || len(w.variables) == 0 {
		return nil
	}
	start := maps.Clone(w.start)
	if len(w.runtime) == 0 {
		return start
	}
	own := c.Values()
	own[enterpriseID] = c.App
	for _, name := range w.runtime {
		if v, ok := c.Given[name]; ok {
			start[name] = v
		} else if v, ok := own[name]; ok {
			start[name] = v
		}
	}
	return start
}

// startValues decides the start value of each variable.
func (b *binder) startValues(opts *Options) {
	files := b.openFiles(opts)
	defer files.close()
	b.w.start = make(map[string]any, len(b.variables))
	for i := range b.variables {
		v := &b.variables[i]
		v.Start = b.startValue(v, &opts.Variables, files)
		b.w.start[v.Name] = v.Start
		if v.Source.Type == SourceRuntime {
			b.w.runtime = append(b.w.runtime, v.Name)
		}
		if v.Tool != "" {
			b.w.readByTools = append(b.w.readByTools, v.Name)
		}
	}
	if digest := files.digest(); digest != "" {
		b.w.digest, b.w.unsure = digest, true
	}
}

// startValue decides the start value of a variable by its source.
func (b *binder) startValue(v *Variable, from *VariableSources, files *variableFiles) any {
	switch v.Source.Type {
	case SourceConfig:
		return b.fromEnvironment(v, from)
	case SourceFile:
		return b.fromFile(v, files)
	case SourceComputed, SourceExternal:
		b.infof(v.at, "set_by_tools", "let a tool set it, or use a source of type state with a default",
			"context variable %s has the source %s: it is null until a tool sets it", v.Name, v.Source.Type)
		return nil
	case SourceDataReference, SourceDataEntity:
		b.loadedBy(v)
	case SourceDerived:
		if !v.hasDefault {
			return false
		}
	case SourceState:
		b.checkDefault(v)
	case SourceStatic, SourceRuntime:
	}
	return b.typed(v, v.Default, "default")
}

// checkTriggers reports triggers that wait for a text of an unknown agent, or for an answer to a tool whose name is close to the name of a
// known one: a tool may ask with any component, so another name is not wrong. Texts of people have the agent user.
func (b *binder) checkTriggers() {
	asking := b.askers()
	for i := range b.variables {
		v := &b.variables[i]
		for _, t := range v.Triggers {
			_, known := b.agent(t.Agent)
			switch {
			case t.Type == TriggerAgentText && len(b.agents) > 0 && t.Agent != "" && t.Agent != "user" && !known:
				b.warnf(v.at, "unknown_agent", didYouMean(t.Agent, b.agentNames()), "a trigger of context variable %s names the unknown agent %s", v.Name, quoted(t.Agent))
			case t.Type == TriggerUIResponse && !slices.Contains(asking, t.Tool):
				if fix := suggestion(t.Tool, asking); fix != "" {
					b.warnf(v.at, "unknown_tool", fix, "a trigger of context variable %s names the unknown tool or component %s", v.Name, quoted(t.Tool))
				}
			}
		}
	}
}

// askers returns the names by which triggers know the tools of the manifests: name, function and component. A tool that has errors
// is known by its name.
func (b *binder) askers() []string {
	names := slices.Clone(b.dropped)
	for i := range b.tools {
		t := &b.tools[i]
		names = append(names, t.name, t.function, t.component)
	}
	return slices.DeleteFunc(sortedSet(names), func(name string) bool { return name == "" })
}

// checkDefault reports a boolean that starts as null: a condition that compares it with False does not hold.
func (b *binder) checkDefault(v *Variable) {
	if v.hasDefault || !isBoolean(v.Type) {
		return
	}
	const fix = "write default: false"
	if b.conditions[v.Name] {
		b.warnf(v.at, "no_default", fix, "boolean context variable %s has no default, so it starts as null, and a condition compares it: ${%s} == False does not hold", v.Name, v.Name)
		return
	}
	b.infof(v.at, "no_default", fix, "boolean context variable %s has no default: it starts as null, not as false", v.Name)
}

// fromEnvironment returns the value of an environment variable that manifests may read, else the default.
func (b *binder) fromEnvironment(v *Variable, from *VariableSources) any {
	name, _ := v.Source.Params["env_var"].(string)
	if name == "" {
		return b.typed(v, v.Default, "default")
	}
	lookup := from.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	switch value, set := lookup(name); {
	case !process.Allowed(name, from.Env):
		b.warnf(v.at, "env_not_allowed", "let the worker read it with --context-env "+name+", or remove env_var",
			"context variable %s has the environment variable %s, which manifests may not read here: its default is used", v.Name, quoted(name))
	case set && (value != "" || coercion(v.Type) == nil):
		return b.typed(v, value, "environment variable "+name)
	case requires(v) && !v.hasDefault:
		b.warnf(v.at, "required_unset", "set it where the worker runs, or add a default",
			"context variable %s requires the environment variable %s, which is not set: it is null", v.Name, quoted(name))
	}
	return b.typed(v, v.Default, "default")
}

// requires reports whether a source of type config is marked as required.
func requires(v *Variable) bool {
	required, _ := v.Source.Params["required"].(bool)
	return required
}

// typed returns a value as the type of the variable has it, null if it has no such value.
func (b *binder) typed(v *Variable, value any, what string) any {
	typed, ok := coerceVariable(v.Type, value)
	if !ok {
		b.warnf(v.at, "bad_value", "write a value of the type, or change the type", "the %s of context variable %s is not of type %s: the variable is null", what, v.Name, v.Type)
	}
	return typed
}

// coerceVariable converts a value to the type of a variable. Only booleans and integers are converted; null stays null.
func coerceVariable(kind string, value any) (any, bool) {
	if convert := coercion(kind); convert != nil && value != nil {
		return convert(value)
	}
	return value, true
}

// coercion returns what converts values to the type of a variable, nil if nothing does.
func coercion(kind string) func(any) (any, bool) {
	switch strings.ToLower(kind) {
	case "boolean", "bool":
		return toBoolean
	case "integer", "int":
		return toInteger
	}
	return nil
}

func isBoolean(kind string) bool {
	return strings.EqualFold(kind, "boolean") || strings.EqualFold(kind, "bool")
}

// toBoolean reads a truth value as people write it.
func toBoolean(value any) (any, bool) {
	var text string
	switch v := value.(type) {
	case bool:
		return v, true
	case string:
		text = v
	case json.Number:
		text = string(v)
	default:
		return nil, false
	}
	truth, ok := (&node{kind: textNode, text: text}).truth()
	if !ok {
		return nil, false
	}
	return truth, true
}

// toInteger reads an integer, also one that is written as a text.
func toInteger(value any) (any, bool) {
	switch v := value.(type) {
	case json.Number:
		return integer(string(v))
	case string:
		return integer(strings.TrimSpace(v))
	default:
		return nil, false
	}
}

func integer(text string) (any, bool) {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64)
	if err != nil {
		return nil, false
	}
	return json.Number(strconv.FormatInt(n, 10)), true
}

// filesFolder returns the folder that files of variables must be in.
func (o *Options) filesFolder() string {
	if o.Variables.Files != "" || o.Root == "" {
		return o.Variables.Files
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return o.Root
	}
	return filepath.Dir(root)
}

// formatOf returns how a file of a variable is read: as its source specifies, else by its extension.
func formatOf(v *Variable, name string) string {
	if format, _ := v.Source.Params["format"].(string); format != "" {
		return strings.ToLower(format)
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return formatJSON
	case ".yaml", ".yml":
		return formatYAML
	}
	return formatText
}
