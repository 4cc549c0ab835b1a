package agentjson

import "strings"

// finalEnd lists what ends the final channel.
func finalEnd() []string { return []string{"<|return|>", "<|end|>", "<|start|>"} }

// WithoutReasoning returns what a model wrote besides its reasoning, and reports whether the text ends inside it. It is for
// texts that are not JSON, which may mention the marks: a block counts if its mark begins a line, in any letter case, and so
// does a closing mark that begins a line and was not opened, which makes all before it reasoning (some endpoints omit the opening
// one). Every channel but the final one is reasoning. [Extract] needs no such preparation.
func WithoutReasoning(text string) (answer string, open bool) {
	lower := lowerASCII(text)
	start := answerStart(lower)
	end := len(text)
	for _, mark := range finalEnd() {
		if i := strings.Index(lower[start:end], mark); i >= 0 && start > 0 {
			end = start + i
		}
	}
	if start == 0 && strings.HasPrefix(strings.TrimSpace(lower), channelMark) {
		return "", true
	}
	var b strings.Builder
	for at := start; at < end; {
		next := at + 1
		if startsLine(lower, at) {
			if r := reasoningAt(lower[at:end]); r.length > 0 && !r.before {
				if !r.closed {
					return b.String(), true
				}
				at += r.length
				continue
			}
		}
		if i := strings.IndexFunc(text[next:end], mayBeginMark); i >= 0 {
			next += i
		} else {
			next = end
		}
		b.WriteString(text[at:next])
		at = next
	}
	return b.String(), false
}

func mayBeginMark(r rune) bool { return r == '<' || r == '[' || r == '◁' }

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
	const final = channelMark + finalChannel + messageMark
	start := 0
	if i := strings.LastIndex(lower, final); i >= 0 {
		start = i + len(final)
	}
	for _, mark := range reasoningMarks() {
		i := strings.Index(lower[start:], mark[1])
		if i >= 0 && startsLine(lower, start+i) && !strings.Contains(lower[start:start+i], mark[0]) {
			start += i + len(mark[1])
		}
	}
	return start
}

// startsLine reports whether nothing but blanks precedes an offset in its line.
func startsLine(text string, at int) bool {
	before := strings.TrimRight(text[:at], " \t")
	return before == "" || strings.HasSuffix(before, "\n")
}
