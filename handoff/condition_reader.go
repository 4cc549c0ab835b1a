package handoff

import (
	"regexp"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/handoff/expression"
)

// conditions reads when the rule applies. It returns the code of an error that has been reported, or "".
func (c *compiler) conditions(e entry, r *Rule) (code string) {
	written, ok := c.handoffType(e)
	if !ok {
		return "unknown_handoff_type"
	}
	if code := c.triggers(e, r); code != "" {
		return code
	}
	kind := c.conditionType(e)
	texts, code := c.conditionTexts(e)
	if code != "" {
		return code
	}
	var questions []string
	for _, t := range texts {
		if code := c.condition(t, kind, r, &questions); code != "" {
			return code
		}
	}
	r.question = strings.Join(questions, "\n")
	conditional := len(r.conditions)+len(r.triggers) > 0 || r.question != ""
	at := e.pointer + "/condition"
	switch {
	case r.question != "":
		r.Kind = ReasonLLM
		if c.Decider == "" {
			c.warnf(at, "no_decider", "write ${…} for a condition on context variables, or name a tool with decider", "condition %s is for a model, and no decider is named: its handoffs are undecided", shown(r.question))
		}
	case conditional:
		r.Kind = ReasonCondition
	case written == "condition":
		c.errorf(at, "no_condition", "add condition: an expression such as ${done} == True", "a handoff rule with handoff_type condition has no condition")
		return "no_condition"
	default:
		r.Kind = ReasonAfterWork
	}
	if conditional && (written == "afterwork" || written == "" && e.mozaiks) {
		c.warnf(at, "after_work_with_condition", "write handoff_type: condition", "the condition of a rule with handoff_type after_work counts here; MozaiksAI ignores it")
	}
	c.scope(e, r)
	return ""
}

// handoffType returns afterwork, condition, or "" if it is not written. It reports false for others.
func (c *compiler) handoffType(e entry) (string, bool) {
	value := e.fields["handoff_type"]
	text, isText := value.(string)
	kind := folded(text)
	if value == nil || isText && slices.Contains([]string{"", "afterwork", "condition"}, kind) {
		return kind, true
	}
	at := e.pointer + "/handoff_type"
	c.errorf(at, "unknown_handoff_type", "write after_work or condition", "unknown handoff_type %s", display(value))
	return "", false
}

// display shows a setting in a finding.
func display(value any) string {
	if text, ok := value.(string); ok {
		return shown(text)
	}
	return typeName(value)
}

// conditionType returns expression, llm, or "" if it has to be seen from the condition.
func (c *compiler) conditionType(e entry) string {
	value := e.fields["condition_type"]
	text, isText := value.(string)
	switch kind := folded(text); {
	case value == nil, isText && kind == "":
		return ""
	case slices.Contains([]string{"expression", "contextexpression", "context"}, kind):
		return "expression"
	case !slices.Contains([]string{"llm", "stringllm"}, kind):
		c.warnf(e.pointer+"/condition_type", "unknown_condition_type", "write expression or llm", "unknown condition_type %s counts as llm", display(value))
	}
	return "llm"
}

// scope reads whether the rule decides before its agent speaks.
func (c *compiler) scope(e entry, r *Rule) {
	value, key := first(e.fields, "condition_scope", "scope")
	text, isText := value.(string)
	kind := folded(text)
	at := e.pointer + "/" + key
	switch {
	case value == nil, isText && slices.Contains([]string{"", "after", "afterwork"}, kind):
	case isText && slices.Contains([]string{"pre", "beforereply", "immediate", "contextpre"}, kind):
		if r.Pre = r.Kind != ReasonAfterWork; !r.Pre {
			c.warnf(at, "scope_ignored", "add a condition, or remove "+key, "a rule without a condition applies after its agent has spoken; scope %s is ignored", shown(text))
		}
	default:
		c.warnf(at, "unknown_scope", "write pre or after", "unknown scope %s counts as after", display(value))
	}
}

// triggers reads the texts of which one has to be the message.
func (c *compiler) triggers(e entry, r *Rule) (code string) {
	value := e.fields["trigger"]
	list, isList := value.([]any)
	if !isList && value != nil {
		list = []any{value}
	}
	for _, item := range list {
		text, ok := item.(string)
		if !ok || strings.TrimSpace(text) == "" {
			c.errorf(e.pointer+"/trigger", "bad_condition", "write the text that the agent sends, for example trigger: NEXT", "the trigger of a handoff rule must be a text, not %s", typeName(item))
			return "bad_condition"
		}
		text = strings.TrimSpace(text)
		r.texts = append(r.texts, text)
		r.triggers = append(r.triggers, strings.ToLower(text)) // compared as in triggers of context variables
	}
	return ""
}

// conditionText is one condition and where it is written.
type conditionText struct{ text, pointer string }

// conditionTexts returns the conditions under condition and conditions that are not empty.
func (c *compiler) conditionTexts(e entry) (texts []conditionText, code string) {
	for _, key := range []string{"condition", "conditions"} {
		value := e.fields[key]
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		for _, item := range list {
			text, isText := item.(string)
			switch {
			case item == nil, isText && strings.TrimSpace(text) == "":
			case isText:
				texts = append(texts, conditionText{strings.TrimSpace(text), e.pointer + "/" + key})
			default:
				c.errorf(e.pointer+"/"+key, "bad_condition", `write a text in quotes, for example "${done} == True"`, "the condition of a handoff rule must be a text, not %s", typeName(item))
				return nil, "bad_condition"
			}
		}
	}
	return texts, ""
}

// foreignNull is the one form of another language that is read: context_variables.x is not null.
var foreignNull = regexp.MustCompile(`(?i)^context_variables\.([\pL\pN_]+)\s+is\s+(not\s+)?(?:null|none)$`)

// bareComparison matches a text that begins like an expression whose variable has no ${}: the name, and the operator if there is one.
var bareComparison = regexp.MustCompile(`^((?:not\s+|!\s*)?)([\pL_][\pL\pN_]*)\s*($|==|!=|<=|>=|<|>)`)

// meantExpression returns the expression that a condition without ${} was probably meant to be: a comparison, or the name of a variable
// alone; "" if it reads like a question.
func (c *compiler) meantExpression(text string) string {
	m := bareComparison.FindStringSubmatch(text)
	if m == nil || m[3] == "" && !slices.Contains(c.Variables, m[2]) {
		return ""
	}
	return m[1] + "${" + m[2] + "}" + text[len(m[1])+len(m[2]):]
}

// condition reads one condition as an expression or as a question for the decider.
func (c *compiler) condition(t conditionText, kind string, r *Rule, questions *[]string) (code string) {
	text := t.text
	if m := foreignNull.FindStringSubmatch(text); m != nil && kind != "llm" {
		operator := "=="
		if m[2] != "" {
			operator = "!="
		}
		text, kind = "${"+m[1]+"} "+operator+" None", "expression"
	}
	if kind == "llm" || kind == "" && !strings.Contains(text, "${") {
		if kind == "llm" && strings.Contains(text, "${") {
			c.warnf(t.pointer, "expression_for_model", "write condition_type: expression", "condition %s has variables but is for a model, which does not see them", shown(text))
		}
		if fixed := c.meantExpression(text); kind == "" && fixed != "" {
			c.warnf(t.pointer, "question_like_expression", "write "+shown(fixed)+" for an expression, or condition_type: llm for a question", "condition %s has no ${…}, so it is a question for the decider", shown(text))
		}
		*questions = append(*questions, text)
		return ""
	}
	parsed, err := expression.Parse(text)
	if err != nil {
		c.errorf(t.pointer, "bad_condition", fixOf(err), "condition %s is invalid: %s", shown(text), messageOf(err))
		return "bad_condition"
	}
	for _, name := range parsed.Variables() {
		if !slices.Contains(c.Variables, name) {
			c.warnf(t.pointer, "unknown_variable", c.declareFix(name), "condition %s uses context variable %s, which is not declared; where nothing sets it, its handoffs are undecided", shown(text), name)
		}
	}
	r.conditions = append(r.conditions, parsed)
	return ""
}
