package expression

import (
	"math/big"
	"slices"
	"strings"
)

// Numbers are written as in Python: underscores between digits, the bases 2, 8 and 16, and decimal fractions. Leading
// zeros and imaginary numbers are refused.

func digit(text string, at int) bool { return at < len(text) && text[at] >= '0' && text[at] <= '9' }

func (l *lexer) numberLiteral(at int) {
	end, based := l.basedEnd(at)
	if !based {
		end = l.decimalEnd(at)
	}
	written := l.source[at:end]
	plain := strings.ReplaceAll(written, "_", "")
	after := l.source[end:nameEndAfterNumber(l.source, end)]
	switch {
	case strings.EqualFold(after, "j"):
		l.failf(CodeSyntax, at, "remove the j", "imaginary number %s", shown(written+after))
	case after != "" && !slices.Contains([]string{"and", "or", "not", "in", "is", "if"}, after):
		l.failf(CodeSyntax, at, "put a space or an operator between them, or quotes around a text", "%s is not a number", shown(written+after))
	case !based && len(plain) > 1 && plain[0] == '0' && strings.Trim(plain, "0123456789") == "" && strings.Trim(plain, "0") != "":
		l.failf(CodeSyntax, at, "write "+strings.TrimLeft(plain, "0")+", or 0o… for an octal number", "number %s has leading zeros", shown(written))
	default:
		l.take(numToken, at, end, "")
		if based {
			whole, _ := new(big.Int).SetString(plain, 0) // valid: basedEnd read its digits
			plain = whole.String()
		}
		l.tok.number, _ = parseDecimal(plain)
	}
}

// nameEndAfterNumber returns the end of the letters and digits that follow a number without a space.
func nameEndAfterNumber(text string, at int) int {
	for digit(text, at) {
		at++
	}
	return nameEnd(text, at)
}

// basedEnd returns where a number with a prefix such as 0x ends. It reports false if there is none.
func (l *lexer) basedEnd(at int) (end int, ok bool) {
	const prefix = 2
	if len(l.source) < at+prefix || l.source[at] != '0' {
		return at, false
	}
	digits := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdefABCDEF"}[l.source[at+1]|0x20]
	end = digitsEnd(l.source, at+prefix, digits, true)
	return end, digits != "" && end > at+prefix
}

func (l *lexer) decimalEnd(at int) int {
	const decimals = "0123456789"
	end := digitsEnd(l.source, at, decimals, false)
	if end < len(l.source) && l.source[end] == '.' {
		end = digitsEnd(l.source, end+1, decimals, false)
	}
	if end < len(l.source) && l.source[end]|0x20 == 'e' {
		first := end + 1
		if first < len(l.source) && (l.source[first] == '-' || l.source[first] == '+') {
			first++
		}
		if exponent := digitsEnd(l.source, first, decimals, false); exponent > first {
			end = exponent
		}
	}
	return end
}

// digitsEnd returns where the digits from at end. Single underscores may stand between digits, and before the first
// where led is set.
func digitsEnd(text string, at int, digits string, led bool) int {
	is := func(i int) bool { return i < len(text) && strings.IndexByte(digits, text[i]) >= 0 }
	for end := at; ; {
		switch {
		case is(end):
			end++
			led = true
			at = end
		case led && end < len(text) && text[end] == '_' && is(end+1):
			end++
		default:
			return at
		}
	}
}
