package bindings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// The common form of all manifests, and the readers of what both formats share: named entries, UI, effect,
// attempts and timeout, misspelt keys, and the settings of a workflow.

// manifest is what the files of one workflow specify, whatever their format: the common form
// that the readers of both formats fill and that is then bound.
type manifest struct {
	*report

	description  string // of the workflow
	agents       []agentEntry
	registered   map[string]registration // agent → model
	models       []modelEntry
	tools        []toolEntry
	dropped      []string // names of tools that could not be read
	servers      map[string]serverEntry
	variables    []Variable
	triggers     int // of all variables
	regexes      int // in these
	handoffs     []handoffSource
	corrections  []correctionEntry
	pattern      string          // orchestration_pattern; "" if it is not written
	conditions   map[string]bool // variables that conditions of handoffs refer to
	defaults     policy
	reuse        string    // on_key_reuse: reuseRun, reuseRefuse, or "" if it is not mentioned
	compatSilent bool      // compat.silent
	compatEvents bool      // compat.events
	splitHiding  bool      // compat.split_hiding
	open         bool      // compat.allowed_values
	files        []fileRef // other files that the manifests name
	unreadable   []place   // manifests that could not be read
	root         string    // the folder of all workflows, absolute; "" without one
	shared       *shared   // what all workflows share
	guarded      int       // guards of all tools
	shares       bool      // something of it is used, or would be if it were there
	enterprise   bool      // a file of the workflow has the name enterprise_id
	visual       []string  // agents that frontends display, folded; all if it is empty
}

// maxEntries bounds the agents, models, fields, tools and variables of one workflow.
const maxEntries = 2000

// fileRef is a file named in a manifest.
type fileRef struct {
	name string
	at   place
}

// agentEntry is an agent that the manifests know.
type agentEntry struct {
	name string
	auto bool // auto_tool_mode; always true in oneturn.yaml
	at   place

	mozaiks bool // a manifest of MozaiksAI has it

	allowed   []string // the only tools that it may call
	limited   bool     // to these
	allowedAt *node
}

// registration is the model of an agent.
type registration struct {
	model string
	at    place
}

// modelEntry is a model in either language: schema is nil for MozaiksAI's.
type modelEntry struct {
	name   string
	fields []model.Field
	alias  map[string]any // of a named literal or union
	schema []byte
	source *node          // of schema; nil if it is made in code
	lines  map[string]int // field → line
	at     place
}

// toolEntry is one tool of a manifest or one declaration.
type toolEntry struct {
	name        string
	description string
	kind        Kind
	agents      []string
	model       string       // own model, "" = the agent's
	file        string       // as written
	path        string       // relative to the root, once located
	problem     *bindProblem // why the file cannot be used
	function    string
	target      target.Target
	server      string // MCP: as written; in target once all manifests are read
	serverAt    place
	input       *model.Model // as declared
	output      *model.Value
	inferInput  bool // as its code declares
	inferOutput bool
	registered  Registered // schemas of a Go function that is declared
	cache       Cache
	cacheAt     place
	limits      target.Limits
	guards      []guards.Guard
	program     *Program // of kind plan and orchestrate
	programNode *node    // its entry
	schema      *node    // a model that it carries itself
	schemaAt    place
	shared      string // name of the shared tool that it is
	auto        bool
	uiTool      bool
	component   string
	mode        string
	secret      bool
	policy      policy
	at          place
}

// bindProblem is why a tool cannot be bound.
type bindProblem struct {
	at        place // what has to be fixed
	text, fix string

	reported bool // a diagnostic has it already
}

// String is the problem as a part of a line.
func (p *bindProblem) String() string { return p.at.String() + ": " + p.text + "; " + p.fix }

// policy is how a tool is run; zero fields are not set.
type policy struct {
	effect   Effect
	attempts int
	timeout  time.Duration
	at       place
}

func (m *manifest) agent(name string) (agentEntry, bool) {
	i := slices.IndexFunc(m.agents, func(a agentEntry) bool { return a.name == name })
	if i < 0 {
		return agentEntry{}, false
	}
	return m.agents[i], true
}

func (m *manifest) agentNames() []string {
	names := make([]string, len(m.agents))
	for i, a := range m.agents {
		names[i] = a.name
	}
	return names
}

// register notes the model of an agent; the later one counts.
func (m *manifest) register(agent, mdl string, at place) {
	if old, ok := m.registered[agent]; ok && old.model != mdl {
		m.warnf(at, "model_registered_twice", "keep one of them",
			"agent %s has model %s here and %s at %s; this one counts", agent, quoted(mdl), quoted(old.model), old.at)
	}
	m.registered[agent] = registration{mdl, at}
}

// addModel notes a model; the later of one name counts.
func (m *manifest) addModel(e modelEntry) {
	i := slices.IndexFunc(m.models, func(o modelEntry) bool { return o.name == e.name })
	if i < 0 {
		m.models = append(m.models, e)
		return
	}
	m.warnf(e.at, "model_defined_twice", "keep one of them",
		"model %s is defined here and at %s; this one counts", e.name, m.models[i].at)
	m.models[i] = e
}

// named is an entry of a map, or of a list whose items carry their name.
type named struct {
	name string
	node *node
}

// entries reads a collection that may be written as a map name → entry or as a list of
// entries with a name; items without one are reported and ignored.
func (m *manifest) entries(n *node, file, what string, nameKeys ...string) []named {
	var all []named
	n = m.bounded(n, file, what)
	switch {
	case n.is(mapNode):
		for i, k := range n.keys {
			all = append(all, named{events.Name(strings.TrimSpace(k)), n.items[i]})
		}
	case n.is(listNode):
		for _, item := range n.items {
			name := item.first(nameKeys...).str()
			if name == "" {
				m.warnf(item.at(file), "entry_without_name", "add "+nameKeys[0],
					"an entry of %s has no name; it is ignored", what)
				continue
			}
			all = append(all, named{name, item})
		}
	case n.absent():
	default:
		m.errorf(n.at(file), "wrong_shape", "write a map name → entry, or a list", "%s must be a map or a list", what)
	}
	return all
}

// bounded returns n, or only its first entries if it has too many.
func (m *manifest) bounded(n *node, file, what string) *node {
	if n == nil || len(n.items) <= maxEntries {
		return n
	}
	m.errorf(n.at(file), "too_many_entries", "split the workflow", "%s has more than %d entries; the rest is ignored", what, maxEntries)
	cut := *n
	cut.items = n.items[:maxEntries]
	cut.keys = n.keys[:min(len(n.keys), maxEntries)]
	return &cut
}

// readUI reads where and how a tool shows.
func (m *manifest) readUI(ui *node, file string, t *toolEntry) {
	if ui.absent() {
		return
	}
	t.component, t.mode = ui.get("component").str(), ui.get("mode").str()
	if s := ui.get("secret"); !s.absent() {
		v, ok := s.truth()
		if !ok {
			m.errorf(s.at(file), "bad_secret", "write true or false", "ui.secret of tool %s is neither true nor false, so its answers count as secret", t.name)
			v = true // the more careful choice
		}
		t.secret = v
	}
}

// over fills what p does not set from another policy.
func (p policy) over(o policy) policy {
	if p.effect == "" {
		p.effect, p.at = o.effect, o.at
	}
	p.attempts = cmp.Or(p.attempts, o.attempts)
	p.timeout = cmp.Or(p.timeout, o.timeout)
	return p
}

// policy reads effect, max_attempts and timeout. An invalid value is reported and
// counts as not set, which is always the more careful choice.
func (m *manifest) policy(n *node, file string) policy {
	var p policy
	if e := n.get("effect"); !e.absent() {
		if word := e.str(); slices.Contains(effects(), word) {
			p.effect, p.at = Effect(word), e.at(file)
		} else {
			m.errorf(e.at(file), "bad_effect", cmp.Or(suggestion(word, effects()), "write for example effect: keyed"),
				"invalid effect %s: must be one of %s", e.shown(), strings.Join(effects(), ", "))
		}
	}
	if a := n.get("max_attempts"); !a.absent() {
		v, err := strconv.Atoi(a.text)
		if !a.is(numberNode) || err != nil || v < 1 || v > maxAttemptsLimit {
			m.errorf(a.at(file), "bad_max_attempts", "write for example max_attempts: 3", "invalid max_attempts %s: must be a whole number from 1 to %d", a.shown(), maxAttemptsLimit)
		} else {
			p.attempts = v
		}
	}
	if t := n.get("timeout"); !t.absent() {
		d, err := duration(t.text)
		if err != nil {
			m.errorf(t.at(file), "bad_timeout", "write for example timeout: 30s, or a number of seconds", "timeout: %v", err)
		} else {
			p.timeout = d
		}
	}
	return p
}

// duration reads "1m30s" or a number of seconds.
func duration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, numErr := strconv.ParseFloat(text, 64)
		if numErr != nil || math.IsNaN(seconds) || math.Abs(seconds) > maxTimeout.Seconds() {
			return 0, fmt.Errorf("%s is not a duration up to %s", quoted(text), maxTimeoutText)
		}
		d = time.Duration(seconds * float64(time.Second))
	}
	if d <= 0 || d > maxTimeout {
		return 0, fmt.Errorf("%s is not between 0 and %s", quoted(text), maxTimeoutText)
	}
	return d, nil
}

// misspelt warns of keys that look like one of ours but are not it. Other unknown keys are
// allowed: MozaiksAI's manifests carry many that no program reads.
func (m *manifest) misspelt(n *node, file string, known ...string) {
	if !n.is(mapNode) {
		return
	}
	const most = 50 // keys looked at; people write a dozen
	for i, k := range n.keys[:min(len(n.keys), most)] {
		if slices.Contains(known, k) {
			continue
		}
		if fix := suggestion(k, known); fix != "" {
			m.warnf(n.items[i].at(file), "misspelt_key", fix, "key %s is not known and is ignored", quoted(k))
		}
	}
}

// What on_key_reuse may be.
const (
	reuseRun    = "run"
	reuseRefuse = "refuse"
)

// settings reads the keys that orchestrator.* and oneturn.yaml share.
func (m *manifest) settings(n *node, file string) {
	if r := n.get("on_key_reuse"); !r.absent() {
		switch s := r.str(); s {
		case reuseRun, reuseRefuse:
			m.reuse = s
		default:
			m.errorf(r.at(file), "bad_on_key_reuse", "write on_key_reuse: refuse", "invalid on_key_reuse %s: must be run or refuse", r.shown())
		}
	}
	for _, flag := range []struct {
		name string
		to   *bool
	}{{"silent", &m.compatSilent}, {"events", &m.compatEvents}, {"allowed_values", &m.open}, {"split_hiding", &m.splitHiding}} {
		s := n.get("compat").get(flag.name)
		if s.absent() {
			continue
		}
		v, ok := s.truth()
		if !ok {
			m.errorf(s.at(file), "bad_compat", "write compat: {"+flag.name+": false}", "invalid compat.%s %s: must be true or false", flag.name, s.shown())
		}
		*flag.to = v
	}
}
