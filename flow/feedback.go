package flow

import (
	"strconv"
	"strings"
)

// maxFeedback bounds the text in bytes, but for its last lines.
const maxFeedback = 48 << 10

// Feedback is a text for the model that wrote the program: one line for each problem, the
// names that it may use, and the request for the whole program. It is the same text for the same
// problems.
func (r *Refused) Feedback() string {
	var b strings.Builder
	b.WriteString("Your plan was not run. ")
	switch n := len(r.Problems); {
	case n == 1:
		b.WriteString("Correct this error:\n")
	case n >= MaxProblems:
		b.WriteString("Correct these errors (the first " + strconv.Itoa(n) + ", there may be more):\n")
	default:
		b.WriteString("Correct these " + strconv.Itoa(n) + " errors:\n")
	}
	for i, p := range r.Problems {
		if b.Len() > maxFeedback {
			b.WriteString("- and " + strconv.Itoa(len(r.Problems)-i) + " more\n")
			break
		}
		if b.WriteString("- "); p.Path != "" {
			b.WriteString(p.Path + ": ")
		}
		b.WriteString(p.Message + "\n")
	}
	if len(r.tools) > 0 {
		b.WriteString("You may call: " + listed(r.tools) + ".\n")
	}
	b.WriteString("Send the whole corrected plan again as one JSON object, and nothing else.")
	return b.String()
}
