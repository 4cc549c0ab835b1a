package bindings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// A [Set] is immutable: all workflows, their bindings and findings. [Set.Resolve] follows the names of a turn
// (workflow, agent, model) to a binding, or returns an error that explains why there is none.

// Causes of the errors that [Set.Resolve] returns. Both are also [events.ErrNoBinding].
var (
	// ErrUnknownWorkflow: this worker has no such workflow; another one may have it.
	ErrUnknownWorkflow = errors.New("unknown workflow")
	// ErrNoBinding: the workflow is known, but nothing is bound to what the turn names.
	ErrNoBinding = errors.New("nothing is bound")
)

// unknownModel is what producers send for an agent without model.
const unknownModel = "UnknownModel"

// Set is all workflows of a root at one moment. It is immutable and safe for concurrent use.
type Set struct {
	workflows   map[string]*workflow
	folded      map[string][]string // names by their form without case
	names       []string
	bindings    []*Binding
	shared      *shared // nil without the file
	general     []Diagnostic
	diagnostics []Diagnostic
	digest      string
	took        time.Duration // to load it
}

// Resolve finds what a turn calls: bound to workflow, model and agent; else to the model, for
// any agent; else, if the turn names no model or UnknownModel, what the agent's registered
// model leads to, or the agent's only tool. A workflow's name is found exactly, else without
// regard to case if only one fits; the other names are exact. All are compared as
// [events.Name] writes them. Success allocates nothing. The error is an [events.ErrNoBinding] and either
// [ErrUnknownWorkflow] or [ErrNoBinding].
func (s *Set) Resolve(workflow, agent, model string) (*Binding, error) {
	w := s.find(workflow)
	if w == nil {
		return nil, s.unknown(workflow)
	}
	agent, model = events.Name(agent), events.Name(model)
	found := w.find(agent, model)
	if found.binding != nil {
		return found.binding, nil
	}
	asked := "agent " + quoted(agent)
	if model != "" {
		asked += " and model " + quoted(model)
	}
	return nil, unresolved(fmt.Sprintf("workflow %s has no tool for %s", quoted(w.name), asked), w.explain(found, agent, model), ErrNoBinding)
}

// resolveError is an [events.Error] with one of the two causes, which its text leaves out.
type resolveError struct {
	err   *events.Error
	cause error
}

// unresolved is an error whose message is complete: it becomes the text of a response.
func unresolved(what, why string, cause error) error {
	if why != "" {
		what += ": " + why
	}
	return &resolveError{&events.Error{Code: events.CodeNoBinding, Op: "resolve", Msg: strings.TrimSuffix(what, "; ")}, cause}
}

// Error implements error.
func (e *resolveError) Error() string { return e.err.Error() }

// Unwrap returns the error and its cause.
func (e *resolveError) Unwrap() []error { return []error{e.err, e.cause} }

// find returns a workflow by its name, nil if there is none or several differ from it in case only.
func (s *Set) find(name string) *workflow {
	name = events.Name(name)
	if w, ok := s.workflows[name]; ok {
		return w
	}
	if fits := s.alike(name); len(fits) == 1 {
		return s.workflows[fits[0]]
	}
	return nil
}

// alike lists the workflows whose names differ from this one in case at most.
func (s *Set) alike(name string) []string {
	var buf [128]byte
	if len(name) > len(buf) {
		return nil
	}
	return s.folded[string(appendFolded(buf[:0], name))] // the compiler makes no string for this access
}

// unknown is the error for a workflow that find does not find.
func (s *Set) unknown(workflow string) error {
	if fits := s.alike(events.Name(workflow)); len(fits) > 1 {
		return unresolved("workflow "+quoted(workflow)+" is ambiguous", "write the name of one exactly: "+listed(fits), ErrUnknownWorkflow)
	}
	fix := didYouMean(workflow, s.names)
	if known, all := strings.CutPrefix(fix, "known: "); all {
		fix = "known to it: " + known
	}
	return unresolved("this worker does not know workflow "+quoted(workflow), fix, ErrUnknownWorkflow)
}

// appendFolded appends a name without its case.
func appendFolded(dst []byte, name string) []byte {
	for _, r := range name {
		dst = utf8.AppendRune(dst, model.Fold(r))
	}
	return dst
}

// find follows the ways to a binding; each key that exists decides.
func (w *workflow) find(agent, model string) slot {
	if s, ok := w.byKey(agent, model); ok {
		return s
	}
	if model != "" && model != unknownModel {
		return slot{}
	}
	if registered := w.registered[agent]; registered != "" {
		if s, ok := w.byKey(agent, registered); ok {
			return s
		}
	}
	return w.onlyTool[agent]
}

func (w *workflow) byKey(agent, model string) (slot, bool) {
	if s, ok := w.exact[key{model, agent}]; ok {
		return s, true
	}
	s, ok := w.byModel[model]
	return s, ok
}

// explain returns the reason why nothing was found.
func (w *workflow) explain(found slot, agent, model string) string {
	var parts []string
	if found.why != "" {
		parts = append(parts, found.why)
	}
	if found.why == "" && model != "" && model != unknownModel {
		bound := slices.Collect(maps.Keys(w.byModel))
		switch {
		case slices.Contains(w.models, model):
			parts = append(parts, "the model is known but no tool is bound to it")
		default:
			why := "the model is not known"
			if near := didYouMean(model, bound); near != "" {
				why += "; " + near
			}
			parts = append(parts, why)
		}
		if only := w.onlyTool[agent].binding; only != nil && only.ModelName == "" {
			parts = append(parts, fmt.Sprintf(`the agent calls %s without a model: send model_name: ""`, quoted(only.Tool)))
		}
	} else if found.why == "" {
		parts = append(parts, w.withoutTool(agent))
	}
	for _, p := range w.unreadable {
		parts = append(parts, p.String()+" cannot be read")
	}
	return strings.Join(parts, "; ")
}

// withoutTool returns why an agent calls nothing: it has no tool, or is not known.
func (w *workflow) withoutTool(agent string) string {
	const none = "the agent has no automatic tool"
	if slices.Contains(w.agents, agent) {
		return none + ": no tool names it"
	}
	if near := didYouMean(agent, w.agents); near != "" {
		return none + "; " + near
	}
	return none
}

// Diagnostics returns the findings about all manifests, by workflow, file and line.
func (s *Set) Diagnostics() []Diagnostic { return slices.Clone(s.diagnostics) }

// Bindings returns every binding, by workflow and in the order of the manifests.
func (s *Set) Bindings() []*Binding { return slices.Clone(s.bindings) }

// Workflows returns the names of all workflows, sorted.
func (s *Set) Workflows() []string { return slices.Clone(s.names) }

// Digest identifies the contents of the whole set: 16 hex digits.
func (s *Set) Digest() string { return s.digest }

// Dir returns the folder of a workflow, relative to the root: "." if it is the root itself, "" if it has none.
func (s *Set) Dir(workflow string) string {
	if w := s.find(workflow); w != nil {
		return w.dir
	}
	return ""
}

// Description returns what a workflow is for, as its manifest has it; "" if it has none.
func (s *Set) Description(workflow string) string {
	if w := s.find(workflow); w != nil {
		return w.description
	}
	return ""
}

// Agents returns the names of the agents of a workflow: those that its manifests list, then those that only its tools name.
func (s *Set) Agents(workflow string) []string {
	w := s.find(workflow)
	if w == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(w.agents), func(name string) bool { return name == "" })
}

// Bound returns what is bound to a tool of a workflow: for this agent, else for any; nil if nothing is. A tool that
// runs programs needs no agent.
func (s *Set) Bound(workflow, agent, tool string) *Binding {
	w := s.find(workflow)
	if w == nil {
		return nil
	}
	var found *Binding
	for _, b := range w.bindings {
		switch {
		case b.Tool != events.Name(tool):
		case b.Agent == events.Name(agent):
			return b
		case found == nil:
			found = b
		}
	}
	if program := w.tools[events.Name(tool)].binding; found == nil && program != nil && program.Program != nil {
		return program
	}
	return found
}

// WorkflowDigest identifies the manifests and code of one workflow; "" if it is not known.
func (s *Set) WorkflowDigest(workflow string) string {
	if w := s.find(workflow); w != nil {
		return w.digest
	}
	return ""
}

// Variables returns the context variables of a workflow in the order of the manifest.
func (s *Set) Variables(workflow string) []Variable {
	if w := s.find(workflow); w != nil {
		return slices.Clone(w.variables)
	}
	return nil
}

// CompatEvents reports whether a workflow wants the older names of events published too.
func (s *Set) CompatEvents(workflow string) bool {
	w := s.find(workflow)
	return w != nil && w.compatEvents
}

// Python returns what the Python code of a workflow needs from outside: the top-level modules
// that neither the folder nor the host has (including the standard library), and the
// environment variables it reads. Both are sorted.
func (s *Set) Python(workflow string) (imports, env []string) {
	if w := s.find(workflow); w != nil {
		return slices.Clone(w.imports), slices.Clone(w.env)
	}
	return nil, nil
}

// Sources returns the Python files of a workflow as they were when this version was checked,
// by their names relative to its folder; nil if it calls none, or if they have over 16 MiB
// together. The caller must not change them.
func (s *Set) Sources(workflow string) map[string][]byte {
	if w := s.find(workflow); w != nil {
		return w.sources
	}
	return nil
}

// Equal reports whether both sets have the same contents and the same diagnostics.
func (s *Set) Equal(o *Set) bool {
	return s.digest == o.digest && slices.Equal(s.diagnostics, o.diagnostics)
}
