package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

// The part of the manifests that messages need: agents that talk, what their texts set, and who speaks after them.

// Agents of messages. Each builder has one tool, of the effect in its name.
const (
	talker        = "talker" // has no model
	critic        = "critic" // has a model and no tool
	builderPrefix = "builder_"
	buildModel    = "Build"
	deciderTool   = "agent:judge"
)

// token is the text that triggers match.
const token = "NEXT"

// Variables that messages set: each token moves both on.
const (
	stage = "stage" // a, b, c and again
	side  = "side"  // 0, 1 and again
)

func builder(e bindings.Effect) string { return builderPrefix + string(e) }

func isBuilder(agent string) bool { return strings.HasPrefix(agent, builderPrefix) }

// talks is the part of a manifest that messages need.
type talks struct {
	schema   string
	prefix   string // what the names of the tools of builders begin with
	effect   func(bindings.Effect) bindings.Effect
	reversed bool // other steps of the triggers, and other rules
	silent   bool // there are no rules
	corrects int  // how often a model corrects an output
}

func (k talks) agents() []byte {
	model := "model: " + buildModel
	if k.corrects > 0 {
		model = fmt.Sprintf("%s, completion: %s, corrections: %d", model, corrector, k.corrects)
	}
	text := fmt.Appendf(nil, "%s: , %s: {%s}", talker, critic, model)
	for _, e := range effects() {
		text = fmt.Appendf(text, ", %s: {%s}", builder(e), model)
	}
	return text
}

func (k talks) tools(text []byte) []byte {
	for _, e := range effects() {
		text = fmt.Appendf(text, "- {name: %s%s, kind: go, agent: %s, effect: %s}\n", k.prefix, e, builder(e), k.effect(e))
	}
	for _, name := range []string{deciderTool, correctorTool} {
		text = fmt.Appendf(text, "- {name: %q, auto: false, completion: {url: \"https://llm.example.com/v1/chat/completions\", model: small}}\n", name)
	}
	return text
}

// rest has the models, the variables and the rules.
func (k talks) rest(text []byte) []byte {
	text = fmt.Appendf(text, "models: {%s: %s}\n", buildModel, k.schema)
	text = fmt.Appendf(text, "context:\n  %s: {default: 0}\n", shared)
	stages, sides := []string{"a", "b", "c"}, []string{"0", "1"}
	if k.reversed {
		slices.Reverse(stages)
	}
	speakers := []string{talker, critic, events.AgentUser}
	for _, e := range effects() {
		speakers = append(speakers, builder(e))
	}
	text = transitions(text, stage, "a", stages, speakers)
	if k.reversed {
		speakers = speakers[:1]
	}
	text = transitions(text, side, "0", sides, speakers)
	if k.silent {
		return text
	}
	builders := strings.Join(speakers[min(3, len(speakers)):], ", ")
	if k.reversed {
		return fmt.Appendf(text, "handoffs:\n- {from: %s, to: terminate, condition: \"${%s} == 'c'\"}\n- {from: %s, to: %s}\n- {from: user, to: %s, condition: \"${%s} == 1\"}\n",
			talker, stage, talker, builder(bindings.EffectNone), critic, side)
	}
	text = fmt.Appendf(text, "handoffs:\n  decider: judge\n  rules:\n")
	text = fmt.Appendf(text, "  - {from: %s, to: %s, condition: \"${%s} == 'b' and ${%s} == 1\"}\n", talker, critic, stage, side)
	text = fmt.Appendf(text, "  - {from: [%s, %s], to: user, condition: the agent has finished, condition_type: llm}\n", talker, builder(bindings.EffectReplay))
	text = fmt.Appendf(text, "  - {from: %s, to: %s}\n", talker, builder(bindings.EffectNone))
	text = fmt.Appendf(text, "  - {from: [%s], to: %s, condition: \"${%s} == 'c'\"}\n", builders, talker, stage)
	text = fmt.Appendf(text, "  - {from: [%s], to: %s, condition: \"${%s} >= 1\"}\n", builders, critic, shared)
	text = fmt.Appendf(text, "  - {from: [%s], to: user}\n", builders)
	return fmt.Appendf(text, "  - {from: user, to: %s, condition: \"${%s} == 1\"}\n", talker, side)
}

// transitions has a variable whose value each token of some agents moves on.
func transitions(text []byte, name, start string, values, speakers []string) []byte {
	text = fmt.Appendf(text, "  %s:\n    default: %s\n    transitions:\n", name, start)
	for _, agent := range speakers {
		for i, from := range values {
			text = fmt.Appendf(text, "    - {from: %s, to: %s, trigger: {type: agent_text, agent: %s, match: {contains: %s}}}\n", from, values[(i+1)%len(values)], agent, token)
		}
	}
	return text
}
