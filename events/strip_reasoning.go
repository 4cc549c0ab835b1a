package events

import "strings"

// Models that reason before they answer may write their reasoning into the text, between
// marks. It is not the answer: it contains drafts of the answer.

// finalChannel begins the answer of models that write channels; finalEnd lists what ends it.
const (
	finalChannel = "<|channel|>final<|message|>"
	anyChannel   = "<|channel|>"
)

func finalEnd() []string { return []string{"<|return|>", "<|end|>", "<|start|>"} }

// reasoningMarks are the pairs that enclose reasoning, in lower case.
func reasoningMarks() [][2]string {
	return [][2]string{
		{"<think>", "</think>"},
		{"<thinking>", "</thinking>"},
		{"<thought>", "</thought>"},
		{"<thoughts>", "</thoughts>"},
		{"<reasoning>", "</reasoning>"},
		{"<seed:think>", "</seed:think>"},
		{"[think]", "[/think]"},
	}
}

// WithoutReasoning returns what a model wrote besides its reasoning, and reports whether the text
// ends inside it. Reasoning is a block in `<think>` or a similar mark that begins a line, in any
// letter case, all that stands before a closing mark that begins a line and was not opened (some
// endpoints cut the opening one off), and every channel but the final one.
func WithoutReasoning(text string) (answer string, open bool) {
	lower := lowerASCII(text)
	start := answerStart(lower)
	end := len(text)
	for _, mark := range finalEnd() {
		if i := strings.Index(lower[start:end], mark); i >= 0 && start > 0 {
			end = start + i
		}
	}
	if start == 0 && strings.HasPrefix(strings.TrimSpace(lower), anyChannel) {
		return "", true
	}
	var b strings.Builder
	for at := start; at < end; {
		next := at + 1
		if startsLine(lower, at) {
			var closed bool
			if next, closed = reasoningAt(lower[:end], at); next > at {
				if !closed {
					return b.String(), true
				}
				at = next
				continue
			}
			next = at + 1
		}
		if i := strings.IndexAny(text[next:end], "<["); i >= 0 {
			next += i
		} else {
			next = end
		}
		b.WriteString(text[at:next])
		at = next
	}
	return b.String(), false
}

// lowerASCII lower-cases A to Z and keeps every offset as it is.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// answerStart returns the offset at which the answer may begin at the earliest.
func answerStart(lower string) int {
	start := 0
	if i := strings.LastIndex(lower, finalChannel); i >= 0 {
		start = i + len(finalChannel)
	}
	for _, mark := range reasoningMarks() {
		i := strings.Index(lower[start:], mark[1])
		if i >= 0 && startsLine(lower, start+i) && !strings.Contains(lower[start:start+i], mark[0]) {
			start += i + len(mark[1])
		}
	}
	return start
}

// startsLine reports whether nothing but blanks stands before an offset in its line.
func startsLine(text string, at int) bool {
	before := strings.TrimRight(text[:at], " \t")
	return before == "" || strings.HasSuffix(before, "\n")
}

// reasoningAt returns the end of the reasoning that begins at an offset, the offset itself if none
// does, and whether it is closed.
func reasoningAt(lower string, at int) (end int, closed bool) {
	for _, mark := range reasoningMarks() {
		if !strings.HasPrefix(lower[at:], mark[0]) {
			continue
		}
		if i := strings.Index(lower[at:], mark[1]); i >= 0 {
			return at + i + len(mark[1]), true
		}
		return len(lower), false
	}
	return at, false
}
