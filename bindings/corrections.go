package bindings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Corrections: an agent of oneturn.yaml may name the model that is asked again when the agent's output cannot be used
// (completion, a tool of kind agent or with effect none), and how often (corrections).

// maxCorrections bounds how often a model is asked to correct one output.
const maxCorrections = 5

// correctionEntry is what a manifest specifies for the outputs of one agent that cannot be used.
type correctionEntry struct {
	agent       string
	completion  *node // absent without the key
	corrections *node // likewise
	at          place
}

// Corrections is which tool is asked to correct the outputs of an agent that cannot be used, and how often.
type Corrections struct {
	Agent string
	Tool  string // as the manifest names it: of kind agent, or of another kind with effect none
	Most  int    // times that it is asked about one output
}

// ownCorrections reads the keys of an agent of oneturn.yaml.
func (m *manifest) ownCorrections(agent string, n *node, file string) {
	e := correctionEntry{agent: agent, completion: n.get("completion"), corrections: n.get("corrections"), at: n.at(file)}
	if e.completion.absent() && e.corrections.absent() {
		return
	}
	e.at.file = file
	m.corrections = append(m.corrections, e)
}

// onlyCorrects reports whether an entry of oneturn.yaml adds only corrections to an agent, which else stays as it is.
func onlyCorrects(n *node) bool {
	return n.is(mapNode) && len(n.keys) > 0 && !slices.ContainsFunc(n.keys, func(k string) bool { return k != "completion" && k != "corrections" })
}

// compileCorrections checks the corrections. It comes after the tools and their index: one of them is the model that is asked.
func (b *binder) compileCorrections() {
	b.w.corrections = make(map[string]Corrections)
	for _, e := range b.corrections {
		most, ok := b.countOfCorrections(&e)
		if !ok {
			continue
		}
		at := e.completion.at(e.at.file)
		switch {
		case e.completion.absent() && most > 0:
			b.errorf(e.corrections.at(e.at.file), "bad_completion", "add completion: the name of a tool of kind agent",
				"corrections of agent %s name no model to ask", quoted(e.agent))
			continue
		case e.completion.absent():
			continue
		}
		tool, wrong := b.agentTool("completion of agent "+quoted(e.agent), e.completion, e.at.file)
		switch {
		case wrong != nil:
			b.errorf(at, "bad_completion", wrong.fix, "%s", wrong.text)
		case tool == "":
		case most == 0:
			b.warnf(at, "key_unused", "add corrections: 1, or remove it", "completion of agent %s is never asked: its corrections are 0", quoted(e.agent))
		case b.w.registered[e.agent] == "" && b.w.automaticTool(e.agent, "") == nil:
			b.warnf(at, "key_unused", "add model to the agent", "agent %s has neither a model nor a tool that its output calls, so no output of it is corrected", quoted(e.agent))
		default:
			b.w.corrections[e.agent] = Corrections{e.agent, tool, most}
		}
	}
}

// countOfCorrections returns how often an output is corrected, and false if the number cannot be used.
func (b *binder) countOfCorrections(e *correctionEntry) (int, bool) {
	n := e.corrections
	if n.absent() {
		return 0, true
	}
	most, err := strconv.Atoi(n.text)
	if !n.is(numberNode) || err != nil || most < 0 || most > maxCorrections {
		b.errorf(n.at(e.at.file), "bad_number", "write for example corrections: 2", "invalid corrections %s of agent %s: must be a whole number from 0 to %d",
			n.shown(), quoted(e.agent), maxCorrections)
		return 0, false
	}
	return most, true
}

// Corrections returns the corrections of a workflow, by agent.
func (s *Set) Corrections(workflow string) []Corrections {
	w := s.find(workflow)
	if w == nil {
		return nil
	}
	all := slices.Collect(maps.Values(w.corrections))
	slices.SortFunc(all, func(a, b Corrections) int { return cmp.Compare(a.Agent, b.Agent) })
	return all
}

// agentTool returns the name of a tool that a manifest names under a key, to be asked like an agent: of kind agent, or any other
// whose effect is none. It is "" if it cannot be used: the problem of a value that is not such a name is returned, any other is
// reported. What is the key.
func (b *binder) agentTool(what string, n *node, file string) (string, *bindProblem) {
	written, at := n.str(), n.at(file)
	t := b.w.agentOf("", written)
	switch {
	case written == "":
		return "", &bindProblem{text: what + " must be a name, not " + n.shown(), fix: "write the name of a tool of kind agent"}
	case len(b.entriesOf(KindOrchestrate, written)) == 0:
		b.errorf(at, "unknown_tool", thereOr(written, b.stepNames(KindOrchestrate), "define it under tools"), "%s names the unknown tool %s", what, quoted(written))
	case b.ambiguous(KindOrchestrate, nil, written):
		b.errorf(at, "ambiguous_tool", "rename one of them, or give the tool an input schema", "%s names %s, which could mean several tools, or one with several models", what, quoted(written))
	case t == nil:
		b.errorf(at, "tool_unusable", "correct the tool", "%s names %s, which cannot be used", what, quoted(written))
	case t.Kind != KindAgent && t.Effect != EffectNone: // after a crash it is asked again
		return "", &bindProblem{
			text: fmt.Sprintf("%s names %s, of kind %s and effect %s", what, quoted(written), t.Kind, t.Effect), fix: "name a tool of kind agent, or one with effect: none",
		}
	default:
		return written, nil
	}
	return "", nil
}
