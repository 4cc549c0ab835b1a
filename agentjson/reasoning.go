package agentjson

import "strings"

// Models that reason before they answer may write their reasoning into the text, between marks. It has
// drafts of the answer, so it is never searched. Marks count in prose only: in a string of an object
// they are part of the value.

// reasoningMarks are the pairs that enclose reasoning, in lower case.
func reasoningMarks() [][2]string {
	return [][2]string{
		{"<think>", "</think>"},
		{"<thinking>", "</thinking>"},
		{"<thought>", "</thought>"},
		{"<thoughts>", "</thoughts>"},
		{"<reasoning>", "</reasoning>"},
		{"<antthinking>", "</antthinking>"},
		{"<scratchpad>", "</scratchpad>"},
		{"<reflection>", "</reflection>"},
		{"<seed:think>", "</seed:think>"},
		{"<|begin_of_thought|>", "<|end_of_thought|>"},
		{"<|start_thinking|>", "<|end_thinking|>"},
		{"[think]", "[/think]"},
		{"◁think▷", "◁/think▷"},
	}
}

// mayBeMark reports whether a mark may begin with c.
func mayBeMark(c byte) bool { return c == '<' || c == '[' || c == "◁"[0] }

// Marks of models that write channels: only the final one is the answer.
const (
	channelMark  = "<|channel|>"
	messageMark  = "<|message|>"
	finalChannel = "final"
)

// maxChannelHeader bounds what stands between the two marks of a channel.
const maxChannelHeader = 256

// hasFold reports whether s begins with lower, in any case of ASCII letters.
func hasFold(s, lower string) bool {
	if len(s) < len(lower) {
		return false
	}
	for i := range len(lower) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// indexFold returns where lower begins in s, in any case of ASCII letters, -1 if nowhere. Its first byte is not a letter.
func indexFold(s, lower string) int {
	for at := 0; ; at++ {
		i := strings.IndexByte(s[at:], lower[0])
		if i < 0 {
			return -1
		}
		if at += i; hasFold(s[at:], lower) {
			return at
		}
	}
}

// block is a piece of reasoning.
type block struct {
	length int  // 0: there is none
	closed bool // its end is in the text
	before bool // all that precedes it is reasoning as well, because the mark that begins the answer is in it
}

// reasoningAt returns the reasoning that s begins with. A closing mark alone is reasoning, too.
func reasoningAt(s string) block {
	for _, mark := range reasoningMarks() {
		switch {
		case hasFold(s, mark[0]):
			if i := indexFold(s, mark[1]); i >= 0 {
				return block{length: i + len(mark[1]), closed: true}
			}
			return block{length: len(s)}
		case hasFold(s, mark[1]):
			return block{length: len(mark[1]), closed: true, before: true}
		}
	}
	return block{}
}

// channelAt returns the channel that s begins with: all of it, and only the header of the final one.
func channelAt(s string) block {
	if !hasFold(s, channelMark) {
		return block{}
	}
	header := s[:min(len(s), maxChannelHeader)]
	i := indexFold(header, messageMark)
	if i < 0 {
		return block{}
	}
	if hasFold(strings.TrimSpace(header[len(channelMark):i]), finalChannel) {
		return block{length: i + len(messageMark), closed: true, before: true}
	}
	if next := indexFold(s[i:], channelMark); next >= 0 {
		return block{length: i + next, closed: true}
	}
	return block{length: len(s)}
}

// lastClosing returns the offset after the last closing mark in s that begins a line, -1 if there is none. An object
// that could not be read and has such a mark in it began in reasoning whose opening mark the endpoint cut off.
func lastClosing(s string) int {
	last := -1
	for _, mark := range reasoningMarks() {
		for at := 0; ; {
			i := indexFold(s[at:], mark[1])
			if i < 0 {
				break
			}
			at += i
			if startsLine(s, at) {
				last = max(last, at+len(mark[1]))
			}
			at += len(mark[1])
		}
	}
	return last
}
