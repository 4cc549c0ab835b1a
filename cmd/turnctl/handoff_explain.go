package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/internal/nearest"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// A handoff is explained from what is stored: the decision, the answers of the decider, and the context variables. The journal does
// not have the values that the conditions have seen: the document of the chat has the newest ones, and which record has set each.
// So a value that nothing has set since is the one that was seen (handoff_explain_values.go), and any other is marked as the value of
// now. The folder with the rules may have changed as well. The decision that they give now is compared with the stored one.

// explainSettings configure turnctl handoff explain.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type explainSettings struct {
	config.Turnctl

	Snapshot  string `flag:"snapshot" help:"File with the context variables that the producer has sent with the message, a JSON object (\"-\" is standard input). Default: none."`
	Workflows string `flag:"workflows" default:"workflows" help:"Folder of the workflow manifests, which have the rules."`
	Python    string `flag:"python" help:"Python interpreter that reads the tools of the folder."`
}

func (a *app) handoffExplain() *cobra.Command {
	var cfg explainSettings
	var message events.TurnID // its Turn is the id of the message
	c := a.command(&cobra.Command{
		Use:   "explain CHAT MESSAGE",
		Short: "Explain the handoff of a message",
		Long: `Explain reads the handoff of a message from the server, without a worker, and tries the rules of the folder
again: it prints the decision that is stored, each rule in the order tried with its outcome, the context
variables in the conditions, what the decider was asked and has answered, rules that cannot be used, and the
fallback of an undecided handoff.

The journal does not store the values that conditions have seen, nor the context variables that a producer
sends with a message: name those with --snapshot. A variable that nothing has set since has the value that was
seen; any other is marked, and its value is the one of now. If the rules give another decision now than the
stored one, explain reports that: the stored decision counts.

Exit code: 0 the message has a decision, or needs none; 1 it was not found, is not decided yet, or could not be read; 2 the folder
cannot be read. The shape of -o json:

  {"app_id", "chat_id", "run_id", "message_id", "agent", "workflow", "state", "meaning",
   "handoff": {"seq", "time", "to", "rule", "reason", "code", "message", "via", "fallback", "ignored"},
   "rules": [{"rule", "source", "kind", "pre", "condition", "to", "outcome", "failed", "code", "message", "file", "line"}],
   "variables": [{"name", "value", "exists", "record", "seen", "as_of"}],
   "decider": [{"call", "rule", "tool", "outcome", "attempts", "asked", "reply"}],
   "now": {"to", "rule", "reason", "code"}, "same", "notes": []}`,
		Example: `  turnctl handoff explain chat-42 message-7
  turnctl handoff explain chat-42 message-7 --run 3 --workflows workflows -o json
  turnctl handoff explain chat-42 message-7 --snapshot sent.json`,
		Args: cli.Arguments(2, 2, "a chat and a message"),
	}, &cfg, func(ctx context.Context, args []string) error {
		if message.Chat, message.Turn = args[0], args[1]; message.Chat == "" || message.Turn == "" {
			return cli.Usagef("handoff explain: chat %q and message %q: neither may be empty", message.Chat, message.Turn)
		}
		snapshot, err := a.contextFile("handoff explain", cfg.Snapshot)
		if err != nil {
			return err
		}
		s, err := a.connect(&cfg.Turnctl)
		if err != nil {
			return err
		}
		defer s.close()
		e, err := s.explain(ctx, &cfg, message, snapshot)
		if err != nil {
			return err
		}
		return a.printOutcome(e.State == messageComplete || e.Handoff != nil, cfg.Format, e, func(w io.Writer) { e.text(w) })
	})
	c.Flags().StringVar(&message.App, "app", events.DefaultApp, "tenant of the message")
	c.Flags().StringVar(&message.Run, "run", "", "run id of the message, if its producer sends one")
	return c
}

// explanation is the output of turnctl handoff explain.
type explanation struct {
	App      string       `json:"app_id"`
	Chat     string       `json:"chat_id"`
	Run      string       `json:"run_id,omitempty"`
	Message  string       `json:"message_id"`
	Agent    string       `json:"agent"`
	Workflow string       `json:"workflow"`
	State    messageState `json:"state"` // of the message: open, complete
	Meaning  string       `json:"meaning"`

	Handoff   *handoffFact    `json:"handoff"`             // null if none is stored
	Rules     []trialFact     `json:"rules"`               // in the order tried
	Variables []seenFact      `json:"variables,omitempty"` // in the conditions of these rules
	Decider   []agentCallFact `json:"decider,omitempty"`   // its calls
	Now       *decisionFact   `json:"now,omitempty"`       // what the rules give now; null if they cannot be tried
	Same      bool            `json:"same"`                // it is the stored decision
	Notes     []string        `json:"notes,omitempty"`

	elsewhere []string       // variables whose start value is from the environment or a file of the workers
	snapshot  map[string]any // of the producer, as far as it is known
}

// trialFact is a rule and its outcome.
type trialFact struct {
	Rule      int             `json:"rule"`
	Source    string          `json:"source"`
	Kind      string          `json:"kind"` // condition, llm or after_work
	Pre       bool            `json:"pre"`
	Condition string          `json:"condition,omitempty"`
	To        string          `json:"to"`
	Outcome   handoff.Outcome `json:"outcome"`
	Failed    string          `json:"failed,omitempty"` // the condition that does not hold or cannot be decided
	Code      string          `json:"code,omitempty"`
	Message   string          `json:"message,omitempty"`
	File      string          `json:"file"`
	Line      int             `json:"line"`
}

// decisionFact is a decision in short.
type decisionFact struct {
	To     *string `json:"to"`
	Rule   *int    `json:"rule"`
	Reason string  `json:"reason"`
	Code   string  `json:"code,omitempty"`
}

// explain reads the handoff of a message and tries the rules again.
func (s *server) explain(ctx context.Context, cfg *explainSettings, id events.TurnID, snapshot map[string]any) (*explanation, error) {
	l, err := s.messageReport(ctx, subjects.MessageKey(id.App, id.Chat, id.Run, id.Turn), false)
	switch {
	case errors.Is(err, errNoRecord):
		return nil, fmt.Errorf("no message %.200q in chat %.200q of app %.200q: turnctl ls --messages lists messages; a message with a run id needs --run", id.Turn, id.Chat, id.App)
	case err != nil:
		return nil, err
	}
	e := &explanation{
		App: l.App, Chat: l.Chat, Run: l.Run, Message: l.ID, Agent: l.Agent, Workflow: l.Workflow, State: l.State, Meaning: l.Meaning, Handoff: l.Handoff, Rules: []trialFact{},
		snapshot: snapshot,
	}
	for _, c := range l.Calls {
		if c.Rule != nil {
			e.Decider = append(e.Decider, c)
		}
	}
	if l.Handoff == nil && l.State == messageComplete {
		e.notef("the message needs no handoff: its workflow had no handoff rules when the message was stored")
		return e, nil
	}
	set, err := e.folder(ctx, cfg)
	if err != nil || set == nil {
		return e, err
	}
	e.compareManifests(set, l)
	start := set.StartValues(l.Workflow, &bindings.Chat{App: l.App, ID: l.Chat, Workflow: l.Workflow, User: l.User})
	state, err := s.contextState(ctx, l.App, l.Chat, variables.Layers{Start: start, Snapshot: snapshot})
	if err != nil {
		e.notef("the context variables cannot be read, so the rules are not tried again: %v", err)
		return e, nil
	}
	for _, v := range set.Variables(l.Workflow) {
		if v.Source.Type == bindings.SourceConfig || v.Source.Type == bindings.SourceFile {
			e.elsewhere = append(e.elsewhere, v.Name)
		}
	}
	e.tryRules(ctx, set.Handoffs(l.Workflow), &history{s.journal, l, state}, s.textOf(ctx, e, l))
	return e, nil
}

func (e *explanation) notef(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// folder reads the manifests; nil if there are none that have the workflow.
func (e *explanation) folder(ctx context.Context, cfg *explainSettings) (*bindings.Set, error) {
	const missing = "so the rules are not shown: name the folder of the workers with --workflows"
	if _, err := os.Stat(cfg.Workflows); errors.Is(err, os.ErrNotExist) {
		e.notef("there is no folder %.200q, %s", cfg.Workflows, missing)
		return nil, nil //nolint:nilnil // what is stored is explained all the same
	}
	set, err := inspect(ctx, "handoff explain", cfg.Workflows, cfg.Python, bindings.VariableSources{})
	if err != nil {
		return nil, err
	}
	if !slices.Contains(set.Workflows(), e.Workflow) {
		e.notef("folder %.200q has no workflow %.80q, %s", cfg.Workflows, e.Workflow, missing)
		return nil, nil //nolint:nilnil // see above
	}
	return set, nil
}

// compareManifests notes that the folder has other manifests than the worker had that has read the message.
func (e *explanation) compareManifests(set *bindings.Set, l *messageReport) {
	if l.digest != "" && l.digest != set.WorkflowDigest(l.Workflow) {
		e.notef("the manifests of the folder are not those with which the message was read, so its rules may have changed since")
	}
}

// textOf returns the text of the message, "" if its content is not a text, or is in a blob that cannot be read.
func (s *server) textOf(ctx context.Context, e *explanation, l *messageReport) string {
	if l.ContentBlob == "" {
		text, _ := l.Content.(string)
		return text
	}
	blobs, err := store.NewBlobs(ctx, s.nc, s.js, s.space)
	if err == nil {
		var value any
		if value, err = blobs.Value(ctx, subjects.MessageKey(l.App, l.Chat, l.Run, l.ID), events.KindText, l.event.Content); err == nil {
			text, _ := value.(string)
			return text
		}
	}
	e.notef("the content of the message is in a blob that cannot be read, so rules with a trigger are tried with an empty text: %v", err)
	return ""
}

// tryRules tries the rules again, with the values that are known.
func (e *explanation) tryRules(ctx context.Context, rules *handoff.Rules, h *history, content string) {
	l, state := h.message, h.state
	chat := (&bindings.Chat{App: l.App, ID: l.Chat, Workflow: l.Workflow, User: l.User}).Values()
	known := maps.Clone(state.Values)
	maps.Copy(known, chat) // whatever a snapshot has
	in := handoff.Input{Agent: l.Agent, Content: content, Last: state.Speaker, Variables: known, Answers: e.answers()}
	if h := l.Handoff; h != nil && h.Reason == string(handoff.ReasonLastSpeaker) && h.To != nil {
		in.Last = *h.To
	}
	trials := rules.Explain(in)
	if len(trials) == 0 && l.Agent != events.AgentUser && (l.Handoff == nil || len(l.Handoff.Ignored) == 0) {
		e.noteAgentWithoutRules(rules)
	}
	var names []string
	for i := range trials {
		t := &trials[i]
		e.Rules = append(e.Rules, trialFact{
			Rule: t.Rule.Number, Source: t.Source, Kind: string(t.Rule.Kind), Pre: t.Rule.Pre, Condition: t.Rule.Condition(), To: t.Rule.To,
			Outcome: t.Outcome, Failed: t.Condition, Code: t.Code, Message: t.Message, File: t.Rule.File, Line: t.Rule.Line,
		})
		names = append(names, t.Rule.Variables()...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		value, exists := known[name]
		f := seenFact{Name: name, Exists: exists, Record: state.Written[name]}
		if exists {
			f.Value = jsonValue(value)
		}
		_, ofChat := chat[name]
		f.Seen, f.AsOf = e.seen(ctx, h, &f, ofChat)
		e.Variables = append(e.Variables, f)
	}
	e.compareDecisions(rules, in)
}

// noteAgentWithoutRules notes that no rule begins at the agent of the message, and which of them has almost the same name.
func (e *explanation) noteAgentWithoutRules(rules *handoff.Rules) {
	var sources []string
	for _, r := range rules.List() {
		sources = append(sources, r.From...)
	}
	if len(sources) == 0 {
		return
	}
	slices.Sort(sources)
	sources = slices.Compact(sources)
	fix := "check its name, or add a rule: there are rules from " + strings.Join(sources, ", ")
	third := func(_, candidate string) int { return (len(candidate) + 1) / 3 } //nolint:mnd // of the characters may differ
	if near := nearest.Of(e.Agent, sources, nearest.Rule{Fold: strings.ToLower, Edits: third}); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	e.notef("no rule is from %.80q: %s", e.Agent, fix)
}

// answers returns the stored answers of the decider by the tokens of its calls.
func (e *explanation) answers() map[string]handoff.Answer {
	answers := map[string]handoff.Answer{}
	for _, c := range e.Decider {
		if c.Outcome != "" {
			answers[c.Call] = c.answer()
		}
	}
	return answers
}

// answer is the answer in the response of the decider.
func (c *agentCallFact) answer() handoff.Answer {
	reply, err := events.Decode(c.Reply)
	if err != nil || c.Outcome != events.StatusOK {
		return handoff.AnswerFailed
	}
	return handoff.ReadResult(reply)
}

// compareDecisions notes whether the rules give the stored decision.
func (e *explanation) compareDecisions(rules *handoff.Rules, in handoff.Input) {
	d, question := rules.Decide(in)
	h := e.Handoff
	untried := h != nil && h.Reason == string(handoff.ReasonUndecided) && h.Rule == nil && h.Code != handoff.CodeCycle
	switch {
	case question != nil && untried:
		e.notef("no rule was tried: %s", h.Message)
		return
	case question != nil:
		e.notef("the decider has not answered for rule %d: without the answer, the rules give no decision", question.Rule)
		return
	}
	e.Now = &decisionFact{Reason: string(d.Reason), Code: d.Code}
	if d.To != "" {
		e.Now.To = &d.To
	}
	if d.Rule != handoff.NoRule {
		e.Now.Rule = &d.Rule
	}
	if h == nil {
		return
	}
	e.Same = equal(h.To, e.Now.To) && equal(h.Rule, e.Now.Rule) && h.Reason == e.Now.Reason && h.Code == e.Now.Code
	switch {
	case e.Same:
	case untried:
		e.notef("no rule was tried: %s", h.Message)
	default:
		e.notef("with the rules of the folder and the values below, the decision would be another one now: the stored decision counts")
		if e.snapshot == nil {
			e.notef("if the producer has sent context variables with the message, name them with --snapshot")
		}
	}
}

func equal[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
