package expression

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// The errors for what Python has and conditions do not, and for what other languages have. Each has the fix.

// keyword reports whether Python reserves the name.
func keyword(word string) bool {
	return slices.Contains([]string{
		"and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
		"finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
		"return", "try", "while", "with", "yield",
	}, word)
}

// refuseName notes or reports a name that is neither a keyword nor len(.
func (p *parser) refuseName(call bool) {
	tok := p.tok
	name := tok.text
	quoted := tok.end < len(p.source) && strings.IndexByte(`'"`, p.source[tok.end]) >= 0
	lower := strings.ToLower(name)
	switch {
	case norm.NFKC.String(name) != name:
		p.failf(CodeSyntax, tok.start, "write "+shown(norm.NFKC.String(name)), "%s has letters that only look like others", shown(name))
	case quoted && strings.Trim(lower, "rbuft") == "":
		p.failf(CodeNotAllowed, tok.start, "remove "+name+" before the quote", "prefix %s of a text", name)
	case call && lower == "len":
		p.failf(CodeNotAllowed, tok.start, "write len in lower case", "function %s", shown(name))
	case call:
		p.failf(CodeNotAllowed, tok.start, "the only function is len(${name}); let a tool set a variable with the result", "function %s", shown(name))
	case p.bare == nil:
		p.bare = p.errorAt(CodeBareName, tok.start, nameFix(name), "name %s without ${}", shown(name))
	}
}

// nameFix is what a bare name probably means.
func nameFix(name string) string {
	switch strings.ToLower(name) {
	case "true":
		return "write True"
	case "false":
		return "write False"
	case "none", "null", "nil", "undefined":
		return "write None"
	case "len":
		return "write len(${name})"
	case "and", "or", "not":
		return "write " + strings.ToLower(name)
	}
	return "write ${" + name + "} for the variable, or quotes around it for the text"
}

// refuseAsValue reports a token where a value has to be.
func (p *parser) refuseAsValue() {
	tok := p.tok
	code, fix := CodeSyntax, "write a variable ${name}, a text in quotes, a number, True, False or None"
	switch {
	case tok.kind == endToken:
		p.failf(code, tok.start, fix, "a value is missing at the end")
		return
	case tok.is("+"), tok.is("~"):
		code, fix = CodeNotAllowed, "remove it"
	case tok.is("["):
		code, fix = CodeNotAllowed, "write ${list} for a list that is not empty, or compare len(${list})"
	case tok.is("{") && strings.HasPrefix(p.source[tok.end:], "{"):
		fix = "write ${name}"
	case tok.is("{"):
		code, fix = CodeNotAllowed, "write ${object} for an object that is not empty; for a variable write ${name}"
	case tok.is("lambda"), tok.is("yield"), tok.is("await"):
		code = CodeNotAllowed
	case tok.is("not"):
		fix = "put parentheses around not and what follows it"
	}
	p.failf(code, tok.start, fix, "%s where a value has to be", shown(tok.written(p.source)))
}

// written returns the token as it is written.
func (t token) written(source string) string { return source[t.start:t.end] }

// refuseAfterValue reports a token that cannot follow a value.
func (p *parser) refuseAfterValue() {
	tok := p.tok
	text := tok.written(p.source)
	rest := strings.TrimLeft(p.source[tok.end:], " \t\n\r\f")
	code, fix := CodeSyntax, "put an operator such as and between the two values"
	switch {
	case tok.kind == signToken:
		code, fix = signAfterValue(text)
	case tok.is("in"), tok.is("not") && strings.HasPrefix(rest, "in"):
		code, fix = CodeNotAllowed, "compare with each value: ${x} == 'a' or ${x} == 'b'"
	case tok.is("is"):
		code, fix = CodeNotAllowed, "write == or !="
	case tok.is("if"), tok.is("for"):
		code, fix = CodeNotAllowed, "write and, or and not"
	case tok.kind == nameToken && slices.Contains([]string{"and", "or", "not"}, strings.ToLower(text)):
		fix = "write " + strings.ToLower(text)
	case tok.kind == nameToken:
		fix += "; for a condition that a model decides write condition_type: llm"
	}
	p.failf(code, tok.start, fix, "%s after a value", shown(text))
}

// signAfterValue is the code and the fix for a sign that is not an operator here.
func signAfterValue(sign string) (Code, string) {
	switch sign {
	case "+", "-", "*", "/", "%", "@", "^", "**", "//", "<<", ">>":
		return CodeNotAllowed, "let a tool set a variable with the result"
	case "[", ".":
		return CodeNotAllowed, "let a tool set a variable with the part"
	case "(":
		return CodeNotAllowed, "the only function is len(${name})"
	case ",", ":=", ":":
		return CodeNotAllowed, "remove it"
	case "=", "===", "!==", "<>", "=>":
		return CodeSyntax, "write ==, != or >="
	case "&&":
		return CodeSyntax, "write and"
	case "||":
		return CodeSyntax, "write or"
	case ")":
		return CodeSyntax, "remove it, or add ("
	case "#":
		return CodeSyntax, "write comments next to the condition"
	case "!":
		return CodeSyntax, "write != for not equal, or not before the value"
	}
	return CodeSyntax, "remove it"
}
