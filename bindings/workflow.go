package bindings

import (
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/handoff"
)

// A workflow is what the binder makes of a folder, and what a [Set] reads.

// key is what a turn names.
type key struct{ model, agent string }

// slot is what a key leads to: a binding, or the reason why there is none.
type slot struct {
	binding *Binding
	why     string
	manual  bool // the tool is there, but not called automatically
}

// workflow is one workflow ready for use. It is immutable.
type workflow struct {
	name, dir, digest string
	description       string

	base   string // digest of what is its own
	shares bool   // it uses the shared file, or would
	joined string // version of that then

	exact         map[key]slot
	byModel       map[string]slot
	onlyTool      map[string]slot // agent → its tool, if it has one only
	registered    map[string]string
	compiled      map[string]*model.Model // the models that can be used
	autoMode      map[string]bool         // agents of MozaiksAI: their auto_tool_mode
	visual        []string                // agents that frontends display, folded; all if it is empty
	bindings      []*Binding
	tools         map[string]slot     // by name, without agent
	steps         stepTools           // what steps of programs can name, in the order of the manifests
	programs      []string            // the tools that run programs
	allowed       map[string][]string // the agents with a list of tools
	order         []string            // their names, in the order of the manifests
	agents        []string
	listsAgents   bool // the manifests have a list of agents: more than the names in tools
	models        []string
	unreadable    []place
	compatEvents  bool                    // compat.events
	presentations map[string]presentation // by tool, of those with a component

	handoffs     *handoff.Rules         // nil without any
	corrections  map[string]Corrections // by agent, of those whose outputs are corrected
	variables    []Variable
	start        map[string]any // their start values
	runtime      []string       // the names of those whose value a chat gives
	readByTools  []string       // the names of those whose value a tool reads
	rules        *Rules         // their triggers
	imports, env []string
	empty        string              // why nothing is bound, "" if something is
	importers    map[string][]string // see [Set.Importers]
	sources      map[string][]byte
	uninspected  bool // the Python files could not be inspected
	unsure       bool // what was inspected may differ from what the digest covers: the next load tries again

	own   []Diagnostic // of this version
	shown []Diagnostic // own, or the ones of a newer version that was not taken
}
