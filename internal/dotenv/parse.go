package dotenv

import (
	"regexp"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// The parser: statement reads one statement of the text, assignment its name, value what is quoted or bare. What
// sets nothing becomes a finding with its line, never an error.

// File is what a .env file sets.
type File struct {
	// Problems are the statements that set nothing, in order: the line where each begins, the message
	// and the fix. Neither contains anything of the line.
	Problems []diag.Finding

	set []assignment
}

type assignment struct {
	name, value string
	none        bool // a name without =, which unsets what stands above it
}

// space is what Python takes for white space within a line: \s for str, but \n and \r, which end lines.
const space = `\t\v\f \x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`

// The grammar of python-dotenv, expression by expression.
var (
	blanks       = regexp.MustCompile(`\A[\n\r` + space + `]*`)
	export       = regexp.MustCompile(`\A(?:export[` + space + `]+)?`)
	quotedName   = regexp.MustCompile(`\A'([^']+)'`)
	plainName    = regexp.MustCompile(`\A([^=#\n\r` + space + `]+)`)
	equals       = regexp.MustCompile(`\A[` + space + `]*(=)[` + space + `]*`)
	singleQuoted = regexp.MustCompile(`\A'((?:\\'|[^'])*)'`)
	doubleQuoted = regexp.MustCompile(`\A"((?:\\"|[^"])*)"`)
	unquoted     = regexp.MustCompile(`\A([^\n]*)`)
	comment      = regexp.MustCompile(`[` + space + `]+#.*`)
	ending       = regexp.MustCompile(`\A(?:[` + space + `]*#[^\n]*)?[` + space + `]*(?:\n|\z)`)
	restOfLine   = regexp.MustCompile(`\A[^\n]*\n?`)

	singleEscape = regexp.MustCompile(`\\[\\']`)
	doubleEscape = regexp.MustCompile(`\\[\\'"abfnrtv]`)
)

//nolint:gochecknoglobals // a read-only table
var escapes = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`, `\a`, "\a", `\b`, "\b",
	`\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\v`, "\v")

// parser reads a text whose lines end with \n.
type parser struct {
	rest string
	line int // of rest
	file File
}

// take cuts what an expression matches off the text, and returns its group.
func (p *parser) take(re *regexp.Regexp) (group string, ok bool) {
	at := re.FindStringSubmatchIndex(p.rest)
	if at == nil {
		return "", false
	}
	if len(at) > 2 && at[2] >= 0 {
		group = p.rest[at[2]:at[3]]
	}
	p.line += strings.Count(p.rest[:at[1]], "\n")
	p.rest = p.rest[at[1]:]
	return group, true
}

// statement reads up to the end of one. After a mistake it resumes at the next line.
func (p *parser) statement() {
	p.take(blanks)
	begin := p.line
	wrong := func(text, fix string) {
		p.file.Problems = append(p.file.Problems, diag.Finding{Severity: diag.SeverityWarning, Line: begin, Message: text, Fix: fix})
	}
	a, named, closed := p.assignment()
	switch _, ended := p.take(ending); {
	case !closed:
		wrong("the quote is not closed", "close it, or put a value that has a quote at its beginning in quotes of the other kind")
	case !ended && a.none:
		wrong("it is not an assignment", "write NAME=value, put # before a comment, and quotes around a value of several lines")
	case !ended && named:
		wrong("something follows the closing quote", "write a comment as #, or a quote in the value as a backslash and the quote")
	case !ended:
		wrong("it has no name", "write NAME=value")
	default:
		if a.none {
			wrong("it is a name without a value", "write NAME= for an empty value, put # before a comment, and quotes around a value of several lines")
		}
		if strings.Contains(a.name, "=") {
			wrong("its name has a =", "write NAME=value")
		} else if named {
			p.file.set = append(p.file.set, a)
		}
		return
	}
	p.take(restOfLine)
}

// assignment reads up to the end of a value; a comment has no name.
func (p *parser) assignment() (a assignment, named, closed bool) {
	p.take(export)
	name := plainName
	if strings.HasPrefix(p.rest, "'") {
		name = quotedName
	}
	a.name, named = p.take(name)
	if !named {
		return a, false, name == plainName
	}
	if _, ok := p.take(equals); !ok {
		a.none = true
		return a, true, true
	}
	a.value, closed = p.value()
	return a, true, closed
}

func (p *parser) value() (value string, closed bool) {
	switch {
	case strings.HasPrefix(p.rest, "'"):
		value, closed = p.take(singleQuoted)
		return singleEscape.ReplaceAllStringFunc(value, escapes.Replace), closed
	case strings.HasPrefix(p.rest, `"`):
		value, closed = p.take(doubleQuoted)
		return doubleEscape.ReplaceAllStringFunc(value, escapes.Replace), closed
	}
	value, _ = p.take(unquoted)
	value = comment.ReplaceAllString(value, "")
	return strings.TrimRightFunc(value, isSpace), true
}

var oneSpace = regexp.MustCompile(`\A[` + space + `]\z`)

func isSpace(r rune) bool { return r == '\n' || r == '\r' || oneSpace.MatchString(string(r)) }
