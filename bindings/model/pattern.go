package model

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Bounds of patterns. Matching takes time in proportion to text × program, so both the source
// and the compiled program are bounded.
const (
	maxPattern = 512   // bytes of source
	maxProgram = 4_000 // instructions
)

// CompilePattern compiles a regular expression in RE2 syntax, as all patterns of schemas are; reason is why it
// cannot be used. Size is its number of instructions: matching a text takes time in proportion to the product of both lengths.
func CompilePattern(source string) (re *regexp.Regexp, size int, reason string) {
	if len(source) > maxPattern {
		return nil, 0, fmt.Sprintf("is longer than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, 0, "is not an RE2 expression (look-around and back references are not possible)"
	}
	repeats := fmt.Sprintf("repeats too much (compiled it has more than %d steps)", maxProgram)
	if instructions(tree) > maxProgram { // compiling it would take long
		return nil, 0, repeats
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, 0, repeats
	}
	re, err = regexp.Compile(source)
	if err != nil {
		return nil, 0, "is not an RE2 expression"
	}
	return re, len(program.Inst), ""
}

// instructions is about how many instructions an expression compiles to, and not more.
func instructions(e *syntax.Regexp) int {
	n := 0
	for _, sub := range e.Sub {
		n += instructions(sub)
	}
	switch e.Op {
	case syntax.OpLiteral:
		n += len(e.Rune)
	case syntax.OpRepeat: // a repeated part is copied
		if copies := max(e.Min, e.Max); n > 0 {
			n = min(n, maxProgram+1) * copies
		}
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		n++
	default: // a constant number, which other parts outweigh
	}
	return n
}
