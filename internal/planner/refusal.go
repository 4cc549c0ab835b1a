package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/excerpt"
)

// RuleMalformed is the rule of the problem of a reply that is not one JSON object.
const RuleMalformed = "malformed"

// Recursion returns the refusal of a prompt that only shows up while a program runs which a planner has written: such a
// program is not planned again. Prompts that can be seen before are refused when the program is compiled.
func Recursion(kind flow.Kind) *flow.Refused {
	return &flow.Refused{Kind: kind, Reason: flow.ReasonPlannerRecursion, Problems: []flow.Problem{{
		Path: "/prompt", Rule: flow.RuleConflict, Message: "a program that a planner wrote cannot be planned again: set plan instead of prompt",
	}}}
}

// maxQuoted is how much of a malformed reply its refusal quotes, in bytes.
const maxQuoted = 80

// malformed is the refusal of a reply that cannot be read. It quotes the beginning.
func (p *Planner) malformed(reply json.RawMessage, err error) *flow.Refused {
	message := "the planner's reply cannot be read: " + err.Error()
	if begins := excerpt.Line(strings.TrimSpace(replyText(reply)), maxQuoted); begins != "" {
		message += fmt.Sprintf("; it begins with %q", begins)
	}
	return &flow.Refused{
		Kind: p.Kind, Reason: flow.ReasonPlannerInvalid,
		Problems: []flow.Problem{{Rule: RuleMalformed, Message: message}},
	}
}

// readable reports whether a refused plan has the form of a plan, only with calls that are wrong. Others are malformed.
func readable(r *flow.Refused) bool {
	return !slices.ContainsFunc(r.Problems, func(p flow.Problem) bool {
		switch p.Rule {
		case RuleMalformed, "type", "required", "enum":
			return p.Use == nil
		}
		return false
	})
}

// feedback is what the agent has to correct.
func feedback(err error) string {
	var refused *flow.Refused
	if !errors.As(err, &refused) {
		return err.Error()
	}
	if refused.Problems[0].Rule == RuleMalformed {
		return refused.Problems[0].Message + "\nSend the whole plan again as exactly one JSON object, without a text before or after it."
	}
	return refused.Feedback()
}
