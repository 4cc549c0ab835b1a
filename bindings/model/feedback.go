package model

import (
	"strconv"
	"strings"
)

// Feedback writes what the model that produced the output needs to correct it: one line for
// each violation and the request for the whole object. It is the same text for the same violations
// and never contains a value of the data.
func Feedback(model string, violations []Violation) string {
	var b strings.Builder
	b.WriteString("Your output does not fit the model ")
	b.WriteString(strconv.Quote(model))
	b.WriteString(". ")
	switch n := len(violations); {
	case n == 1:
		b.WriteString("Correct this error:\n")
	case n >= MaxViolations:
		b.WriteString("Correct these errors (the first " + strconv.Itoa(n) + ", there may be more):\n")
	default:
		b.WriteString("Correct these " + strconv.Itoa(n) + " errors:\n")
	}
	for _, f := range violations {
		b.WriteString("- ")
		b.WriteString(f.String())
		b.WriteByte('\n')
	}
	b.WriteString("Send the whole corrected JSON object again, not only the changed parts, and nothing else.")
	return b.String()
}

// String names the place of the value and what was expected. It contains nothing of the value.
func (f Violation) String() string {
	if f.Path == "" {
		return "the whole value" + f.line()
	}
	return f.Path + f.line()
}

// line is what is wrong and what was expected.
func (f Violation) line() string {
	var text string
	switch f.Rule {
	case RuleRequired:
		return ": is missing; expected " + f.Expected + "."
	case RuleType:
		text = ": expected " + f.Expected + ", got " + f.GotType + "."
	case RuleEnum, RuleConst:
		text = ": expected " + f.Expected + ", got another value (" + f.GotType + ")."
	default:
		text = ": expected " + f.Expected + " (rule " + f.Rule + "), got " + f.GotType + "."
	}
	if f.DidYouMean != "" {
		text += " Did you mean " + strconv.Quote(f.DidYouMean) + "?"
	}
	return text
}
