package agentjson

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Numbers and literals. Other names are never quoted, and a number with two readings is an error.

// scalar reads the number or word at pos.
func (r *reader) scalar() *Error {
	if err := r.elided(); err != nil {
		return err
	}
	c := r.s[r.pos]
	if c == '\\' {
		err := r.fail(BadSyntax, `some quotes are escaped and some are not: write \" only inside strings`)
		err.meant = true // where its strings end, and so where it ends, is not known
		return err
	}
	if isDigit(rune(c)) || c == '-' || c == '+' || c == '.' {
		return r.number()
	}
	start := r.pos
	for r.pos < len(r.s) && r.s[r.pos] < utf8.RuneSelf && isNamePart(rune(r.s[r.pos])) {
		r.pos++
	}
	word, end := r.s[start:r.pos], r.pos
	if end == len(r.s) {
		return r.truncated()
	}
	if word == "true" || word == "false" || word == "null" {
		return nil
	}
	if with, ok := pythonLiteralOf(word); ok {
		r.replace(pythonLiteral, start, end, with)
		return nil
	}
	r.pos = start
	switch strings.ToLower(word) {
	case "nan", "infinity", "inf":
		return r.fail(BadNumber, notFinite)
	default:
		return r.fail(BadSyntax, "expected a value: a text needs double quotes, other words are true, false and null")
	}
}

const notFinite = "NaN and infinity are not JSON: send null or omit the name"

// pythonLiteralOf returns the literal of JSON for a literal of Python.
func pythonLiteralOf(word string) (string, bool) {
	switch word {
	case "True":
		return "true", true
	case "False":
		return "false", true
	case "None":
		return "null", true
	default:
		return "", false
	}
}

// number reads the number at pos.
func (r *reader) number() *Error {
	start := r.pos
	for r.pos < len(r.s) && (r.s[r.pos] < utf8.RuneSelf && isNamePart(rune(r.s[r.pos])) || strings.IndexByte("+-.", r.s[r.pos]) >= 0) {
		r.pos++
	}
	literal, end := r.s[start:r.pos], r.pos
	if end == len(r.s) {
		return r.truncated()
	}
	if isNumber(literal) {
		return nil
	}
	if form := numberInForm(literal); strings.ContainsAny(literal, "0123456789") && isNumber(form) {
		r.replace(numberForm, start, end, form)
		return nil
	}
	r.pos = start
	if strings.Contains(strings.ToLower(literal), "inf") {
		return r.fail(BadNumber, notFinite)
	}
	return r.fail(BadNumber, "not a decimal number as in JSON: write digits without a leading zero, a point and an exponent at most")
}

func isNumber(literal string) bool {
	return literal != "" && (isDigit(rune(literal[0])) || literal[0] == '-') && json.Valid([]byte(literal))
}

// numberInForm writes +1, .5 and 5. as JSON does.
func numberInForm(literal string) string {
	sign := ""
	if strings.HasPrefix(literal, "-") {
		sign = "-"
	}
	literal = strings.TrimLeft(literal[:1], "+-") + literal[1:]
	if literal == "" || literal[0] == '+' || literal[0] == '-' {
		return "" // two signs
	}
	if strings.HasPrefix(literal, ".") {
		literal = "0" + literal
	}
	whole, fraction, ok := strings.Cut(literal, ".")
	if ok && (fraction == "" || !isDigit(rune(fraction[0]))) {
		literal = whole + ".0" + fraction
	}
	return sign + literal
}

// elided reports three dots in place of a value or member.
func (r *reader) elided() *Error {
	if rest := r.s[r.pos:]; strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "…") {
		return r.fail(Elided, "three dots stand for data that was left out: send all of it")
	}
	return nil
}
