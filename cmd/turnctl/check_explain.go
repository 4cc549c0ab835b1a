package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// resolution is how one turn would be resolved.
type resolution struct {
	Workflow string         `json:"workflow"`
	Agent    string         `json:"agent"`
	Model    string         `json:"model"`
	Binding  *bindingReport `json:"binding"` // null if there is none
	Why      string         `json:"why"`     // which rule found it, or the error
	Cause    string         `json:"cause,omitempty"`
	Accepts  []string       `json:"accepts,omitempty"` // fields of the model
}

// explain prints how a turn with this workflow, agent and model is resolved to its tool.
func (a *app) explain(format string, set *bindings.Set, path string) error {
	parts := strings.SplitN(path, "/", 3)
	if len(parts) < 2 || parts[0] == "" {
		return cli.Usagef("check: invalid --explain %q: use WORKFLOW/AGENT/MODEL, for example Hello/Greeter/Greeting", path)
	}
	r := &resolution{Workflow: parts[0], Agent: parts[1]}
	if len(parts) == 3 {
		r.Model = parts[2]
	}
	b, err := set.Resolve(r.Workflow, r.Agent, r.Model)
	if err != nil {
		r.Why, r.Cause = err.Error(), "no_binding"
		if errors.Is(err, bindings.ErrUnknownWorkflow) {
			r.Cause = "unknown_workflow"
		}
	} else {
		found := reportBinding(set, b)
		r.Binding, r.Why = &found, rule(r, b)
		if b.Model != nil {
			r.Accepts = b.Model.Fields()
		}
	}
	return a.printOutcome(r.Binding != nil, format, r, r.text)
}

// rule names the rule of [bindings.Set.Resolve] that led to b.
func rule(r *resolution, b *bindings.Binding) string {
	var why string
	switch {
	case b.ModelName == r.Model && b.Agent == r.Agent && r.Model != "":
		why = "the tool is bound to this agent and model"
	case b.ModelName == r.Model && r.Model != "":
		why = fmt.Sprintf("no tool is bound to this agent and model; the model is bound for agent %s, and a binding of a model applies to any agent", id(b.Agent))
	case b.ModelName != "":
		why = "the turn names no known model, and the model of the agent is " + id(b.ModelName)
	default:
		why = "the agent has no model and this one tool: its data is not validated"
	}
	if b.Workflow != r.Workflow {
		why = fmt.Sprintf("the workflow is %s, compared without regard to case; %s", id(b.Workflow), why)
	}
	return why
}

func (r *resolution) text(w io.Writer) {
	fmt.Fprintf(w, "workflow %s, agent %s, model %s\n", id(r.Workflow), id(r.Agent), id(r.Model))
	fmt.Fprintln(w, wrap(clean(r.Why, 2000), 2))
	if r.Binding == nil {
		fmt.Fprintln(w, wrap(r.advice(), 2))
		return
	}
	bindingsText(w, []bindingReport{*r.Binding})
	if len(r.Accepts) > 0 {
		fmt.Fprintln(w, wrap("fields: "+clean(strings.Join(r.Accepts, ", "), 1000), 6))
	}
}

// advice describes what a worker does with such a turn.
func (r *resolution) advice() string {
	if r.Cause == "unknown_workflow" {
		return "a worker waits for --binding-grace, because another worker may know the workflow (2s if it is alone on its embedded server); then the turn ends as no_binding"
	}
	return "the turn ends as no_binding, without a wait; `turnctl check DIR` shows what is bound"
}
