package handoff

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/handoff/expression"
)

// Findings about rules that are valid but never apply.

// checkUnreachable reports rules that another rule of the same source always precedes.
func (c *compiler) checkUnreachable() {
	for _, r := range c.rules.rules {
		c.manifest = r.manifest
		c.checkConstant(r)
	}
	reported := make(map[*Rule]bool) // a rule of several sources is reported once
	for _, source := range slices.Sorted(maps.Keys(c.rules.bySource)) {
		c.checkSource(source, reported)
	}
	c.checkPreOfUser()
}

func (c *compiler) neverf(r *Rule, reported map[*Rule]bool, code, fix, format string, args ...any) {
	if !reported[r] {
		reported[r] = true
		c.manifest = r.manifest
		c.warnf(r.pointer, code, fix, "handoff rule %d never applies: %s", r.Number, fmt.Sprintf(format, args...))
	}
}

// checkConstant reports conditions without variables that are false or cannot be evaluated.
func (c *compiler) checkConstant(r *Rule) {
	for _, e := range r.conditions {
		if len(e.Variables()) > 0 {
			continue
		}
		switch holds, err := e.Eval(nil); {
		case err != nil:
			c.warnf(r.pointer, "bad_condition", fixOf(err), "condition %s is never decided: %s", shown(e.String()), messageOf(err))
		case !holds:
			c.warnf(r.pointer, "never_applies", "remove the rule, or correct its condition", "handoff rule %d never applies: %s is always false", r.Number, shown(e.String()))
		}
	}
	if r.Pre && slices.Contains(r.From, r.To) {
		c.warnf(r.pointer, "cycle", "name another target", "pre rule %d of %s chooses %s again: its handoffs are undecided", r.Number, r.To, r.To)
	}
}

// always reports whether the rule applies to every message.
func (r *Rule) always() bool {
	return len(r.triggers) == 0 && r.question == "" && !slices.ContainsFunc(r.conditions, func(e *expression.Expression) bool {
		holds, err := e.Eval(nil)
		return err != nil || !holds || len(e.Variables()) > 0
	})
}

// key is equal for rules that apply to the same messages.
func (r *Rule) key() string {
	parts := []string{strconv.FormatBool(r.Pre), strings.Join(r.triggers, "\x00")}
	for _, e := range r.conditions {
		parts = append(parts, e.String())
	}
	return strings.Join(append(parts, r.question), "\x01")
}

// checkSource goes through the rules of a source in the order in which they are tried.
func (c *compiler) checkSource(source string, reported map[*Rule]bool) {
	seen := make(map[string]*Rule)
	var alwaysPre, alwaysAfter, unconditional *Rule
	for _, r := range c.rules.bySource[source] {
		if r.Kind == ReasonAfterWork {
			if unconditional != nil {
				c.neverf(unconditional, reported, "overridden", "remove one of them", "rule %d of %s has no condition either, and the last one counts", r.Number, source)
			}
			unconditional = r
			continue
		}
		always := &alwaysAfter
		if r.Pre {
			always = &alwaysPre
		}
		before, same := seen[r.key()]
		switch {
		case same:
			c.neverf(r, reported, "never_applies", "remove one of them", "rule %d of %s has the same condition", before.Number, source)
		case *always != nil && (r.Pre || r.Kind != ReasonLLM):
			c.neverf(r, reported, "never_applies", "move it before the other rule", "rule %d of %s always applies first", (*always).Number, source)
		case r.always():
			*always = r
		}
		if !same {
			seen[r.key()] = r
		}
	}
	if unconditional != nil && alwaysAfter != nil {
		c.neverf(unconditional, reported, "never_applies", "remove one of them", "rule %d of %s always applies first", alwaysAfter.Number, source)
	}
}

// checkPreOfUser reports pre rules of the user where no rule chooses the user.
func (c *compiler) checkPreOfUser() {
	chosen := slices.ContainsFunc(c.rules.rules, func(r *Rule) bool { return r.To == User })
	for _, r := range c.rules.rules {
		if r.Pre && len(r.From) == 1 && r.From[0] == User && !chosen {
			c.manifest = r.manifest
			c.warnf(r.pointer, "never_applies", "add a rule with target user, or write scope: after", "pre rule %d of user never applies: no rule chooses the user", r.Number)
		}
	}
}

// declareFix is the fix for a variable that is not declared.
func (c *compiler) declareFix(name string) string {
	if near := nearestName(name, c.Variables); near != "" {
		return "did you mean ${" + near + "}?"
	}
	return "declare it as a context variable"
}

// messageOf returns the message of an error of a condition, with its position.
func messageOf(err error) string {
	var known *expression.Error
	if !errors.As(err, &known) {
		return err.Error()
	}
	short := *known
	short.Fix = ""
	return short.Error()
}

func fixOf(err error) string {
	var known *expression.Error
	if !errors.As(err, &known) {
		return ""
	}
	return known.Fix
}
