package bindings

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
)

// Agent is what a worker knows of an agent whose messages it handles.
type Agent struct {
	Workflow  string // as the folder spells it
	Name      string
	ModelName string       // of its registered model, else of the tool that its output calls; "" if it has none
	Model     *model.Model // nil if it has no model, or one that cannot be used
	// Tool is what an object in its message calls, nil if it has no tool that runs by itself.
	Tool *Binding
	// Corrections is how often a model is asked to correct an output of the agent that cannot be used; 0 is never.
	Corrections int
	// Visual reports whether frontends display the agent: ui_config.visual_agents names it, or no agent at all.
	Visual bool
	// Unknown states the fix for an agent that the manifests do not name, although they name others; "" if they name it.
	Unknown string
}

// Structured reports whether a message of the agent is expected to be JSON.
func (a *Agent) Structured() bool { return a.Model != nil || a.Tool != nil }

// Agent returns an agent of a workflow; one that the manifests do not know is an agent without model and tool. The error is the
// one of [Set.Resolve] for an unknown workflow.
func (s *Set) Agent(workflow, agent string) (Agent, error) {
	w := s.find(workflow)
	if w == nil {
		return Agent{}, s.unknown(workflow)
	}
	a := Agent{Workflow: w.name, Name: events.Name(agent), Visual: w.displays(agent)}
	a.ModelName = w.registered[a.Name]
	if a.Tool = w.automaticTool(a.Name, a.ModelName); a.Tool != nil && a.Tool.ModelName != "" {
		a.ModelName = a.Tool.ModelName
	}
	if a.Model = w.compiled[a.ModelName]; a.Tool != nil {
		a.Model = a.Tool.Model
	}
	a.Corrections = w.corrections[a.Name].Most
	if w.listsAgents && !handoff.IsUser(a.Name) && !slices.Contains(w.agents, a.Name) {
		a.Unknown = didYouMean(a.Name, w.agents)
	}
	return a, nil
}

// Corrector returns the tool of kind agent that corrects the outputs of an agent which cannot be used; nil if they are not
// corrected.
func (s *Set) Corrector(workflow, agent string) *Binding {
	if w := s.find(workflow); w != nil {
		return w.agentOf("", w.corrections[events.Name(agent)].Tool)
	}
	return nil
}

// automaticTool returns what an object in a message of an agent calls. An agent of MozaiksAI has to be in auto_tool_mode, and then
// calls what is bound to its model, whichever agent that names.
func (w *workflow) automaticTool(agent, model string) *Binding {
	auto, mozaiks := w.autoMode[agent]
	switch {
	case mozaiks && auto:
		return w.find(agent, model).binding
	case mozaiks:
		return nil
	case model == "":
		return w.onlyTool[agent].binding
	}
	if s, ok := w.exact[key{model, agent}]; ok {
		return s.binding
	}
	return w.onlyTool[agent].binding
}

// displays reports whether frontends display an agent.
func (w *workflow) displays(agent string) bool {
	return len(w.visual) == 0 || agent == events.AgentUser || slices.Contains(w.visual, foldAgent(agent))
}

// foldAgent returns the form in which MozaiksAI compares the names in visual_agents.
func foldAgent(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(name), " ", ""), "agent", "")
}
