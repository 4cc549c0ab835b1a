package expression

import (
	"slices"
	"strings"
)

// Bounds of a condition, which people write.
const (
	MaxBytes = 4 << 10
	MaxDepth = 100 // of parentheses, not, ! and minus within each other
)

// Expression is a condition that has been parsed. It is immutable and safe for concurrent use.
type Expression struct {
	source    string
	root      node
	variables []string // in the order of their first use
	places    []int    // columns of these
}

// Parse reads a condition. The error is an [*Error] with one of the codes of Parse.
func Parse(source string) (*Expression, error) {
	if len(source) > MaxBytes {
		return nil, &Error{Code: CodeTooLarge, Message: "the condition is longer than 4 KiB", Fix: "split it into several rules, or let a tool set one variable"}
	}
	p := &parser{lexer: lexer{source: source}}
	p.next()
	if p.tok.kind == endToken && p.err == nil {
		return nil, &Error{Code: CodeSyntax, Message: "the condition is empty", Fix: "write for example ${done} == True"}
	}
	root := p.disjunction()
	if p.tok.kind != endToken {
		p.refuseAfterValue()
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case p.bare != nil:
		return nil, p.bare
	}
	return &Expression{source: source, root: root, variables: p.variables, places: p.places}, nil
}

// String returns the condition as it is written.
func (e *Expression) String() string { return e.source }

// Variables returns the names of the variables in the order of their first use, each once.
func (e *Expression) Variables() []string { return slices.Clone(e.variables) }

// parser reads by recursive descent: each method reads one level of precedence.
type parser struct {
	lexer

	variables []string
	places    []int
	depth     int
	bare      *Error // the first bare name; a syntax error counts more
}

// nested reads one level deeper.
func (p *parser) nested(read func() node) node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > MaxDepth {
		p.failf(CodeTooLarge, p.tok.start, "write fewer parentheses and not", "the condition is more than %d levels deep", MaxDepth)
		return constant{}
	}
	return read()
}

func (p *parser) disjunction() node {
	first := p.conjunction()
	if !p.tok.is("or") && !p.tok.is("|") {
		return first
	}
	all := either{first}
	for p.tok.is("or") || p.spaced("|", "or") {
		p.next()
		all = append(all, p.conjunction())
	}
	return all
}

func (p *parser) conjunction() node {
	first := p.negation()
	if !p.tok.is("and") && !p.tok.is("&") {
		return first
	}
	all := both{first}
	for p.tok.is("and") || p.spaced("&", "and") {
		p.next()
		all = append(all, p.negation())
	}
	return all
}

// spaced reports whether the token is the sign & or |, and refuses it without white space around it: AG2 does, since
// in Python it binds tighter than a comparison there.
func (p *parser) spaced(sign, word string) bool {
	if !p.tok.is(sign) {
		return false
	}
	if end := p.tok.end; p.tok.start == p.before || end < len(p.source) && !blank(p.source[end]) {
		p.failf(CodeNotAllowed, p.tok.start, "write "+word+", or a space on each side of it", "%s without spaces around it", sign)
		return false
	}
	return true
}

func (p *parser) negation() node {
	switch {
	case p.tok.is("not"):
		p.next()
	case p.tok.is("!"):
		at := p.tok.start
		p.next()
		if p.err == nil && p.tok.kind != refToken && !p.tok.is("(") {
			p.failf(CodeSyntax, at, "write not", "! is allowed only before ${ and (")
		}
	default:
		return p.comparison()
	}
	return p.nested(func() node { return negation{p.negation()} })
}

func (p *parser) comparison() node {
	c := comparison{first: p.signed()}
	for p.tok.kind == signToken && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, p.tok.text) {
		step := step{operator: p.tok.text, column: p.column()}
		p.next()
		step.right = p.signed()
		c.rest = append(c.rest, step)
	}
	if len(c.rest) == 0 {
		return c.first
	}
	return c
}

// column of the current token.
func (p *parser) column() int { return p.errorAt("", p.tok.start, "", "").Column }

// signed reads a value with its minus signs.
func (p *parser) signed() node {
	if !p.tok.is("-") {
		return p.value()
	}
	at := p.column()
	p.next()
	return p.nested(func() node { return minus{p.signed(), at} })
}

func (p *parser) value() node {
	tok := p.tok
	switch {
	case tok.kind == refToken:
		p.next()
		return reference(p.variable(tok))
	case tok.kind == textToken:
		p.next()
		return constant{operand{kind: textKind, text: tok.text}}
	case tok.kind == numToken:
		p.next()
		return constant{operand{kind: numberKind, number: tok.number}}
	case tok.is("True"), tok.is("False"):
		p.next()
		return constant{boolean(tok.text == "True")}
	case tok.is("None"):
		p.next()
		return constant{}
	case tok.is("("):
		return p.parentheses()
	case tok.kind == nameToken && !keyword(tok.text):
		return p.word()
	}
	p.refuseAsValue()
	return constant{}
}

func (p *parser) parentheses() node {
	open := p.tok.start
	p.next()
	if p.tok.is(")") {
		p.failf(CodeNotAllowed, open, "write a condition within them, or remove them", "empty parentheses")
	}
	inner := p.nested(p.disjunction)
	switch {
	case p.err != nil:
	case p.tok.is(")"):
		p.next()
	case p.tok.kind == endToken:
		p.failf(CodeSyntax, open, "add )", "( is not closed")
	default:
		p.refuseAfterValue()
	}
	return inner
}

// variable returns the number of a reference.
func (p *parser) variable(tok token) int {
	if i := slices.Index(p.variables, tok.text); i >= 0 {
		return i
	}
	p.variables = append(p.variables, tok.text)
	p.places = append(p.places, p.errorAt("", tok.start, "", "").Column)
	return len(p.variables) - 1
}

// word reads len(${name}); any other name is refused.
func (p *parser) word() node {
	tok := p.tok
	next := strings.TrimLeft(p.source[tok.end:], " \t\n\r\f")
	switch call := strings.HasPrefix(next, "("); {
	case call && tok.text == "len":
		p.next()
		p.next()
		return p.length(tok.start)
	default:
		p.refuseName(call)
		p.next()
		return constant{}
	}
}

// length reads the argument of len.
func (p *parser) length(at int) node {
	const fix, refused = "write len(${name})", "len takes one variable"
	arg := p.tok
	if arg.kind != refToken {
		code := CodeNotAllowed
		if arg.kind == endToken {
			code = CodeSyntax
		}
		p.failf(code, at, fix, refused)
		return constant{}
	}
	p.next()
	switch {
	case p.err != nil:
	case p.tok.kind == endToken:
		p.failf(CodeSyntax, at, "add )", "( of len is not closed")
	case !p.tok.is(")"):
		p.failf(CodeNotAllowed, at, fix, refused)
	}
	p.next()
	return length(p.variable(arg))
}
