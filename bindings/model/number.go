package model

import (
	"bytes"
	"math/big"
	"strings"
)

// Numbers are compared by their literals, exactly: shapeOf classifies a spelling, and decimal is its value as
// digits and an exponent, with comparison and multiples.

// Bounds of a number literal (facts: a longer exponent makes arbitrary-precision arithmetic
// slow or panic). events.Decode holds them already; the check does not rely on it.
const (
	maxLiteral  = 64  // characters
	maxExponent = 308 // absolute value
)

// shape is what the spelling of a JSON number reveals about it.
type shape uint8

const (
	notNumber       shape = iota
	integerLiteral        // -12
	fractionLiteral       // 1.5, 1e3, 5.0
)

// shapeOf classifies a literal by the JSON grammar and the bounds above.
func shapeOf(s string) shape {
	if len(s) > maxLiteral {
		return notNumber
	}
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	whole := digits(s, i)
	if whole == i || (s[i] == '0' && whole > i+1) {
		return notNumber
	}
	i = whole
	if i == len(s) {
		return integerLiteral
	}
	if s[i] == '.' {
		end := digits(s, i+1)
		if end == i+1 {
			return notNumber
		}
		i = end
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		end := digits(s, i)
		if end == i || atoi(s[i:end]) > maxExponent {
			return notNumber
		}
		i = end
	}
	if i != len(s) {
		return notNumber
	}
	return fractionLiteral
}

// digits returns the end of the run of ASCII digits that starts at i.
func digits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// atoi reads ASCII digits and saturates above maxExponent.
func atoi(s string) int {
	n := 0
	for i := 0; i < len(s) && n <= maxExponent; i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// decimal is the exact value of a literal: 0.d1d2…dn × 10^exp, without leading or trailing
// zeros. Zero has no digits.
type decimal struct {
	negative bool
	n, exp   int
	digit    [maxLiteral]byte
}

// parseDecimal reads a JSON number; ok is false for anything else.
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	if shapeOf(s) == notNumber {
		return d, false
	}
	if s[0] == '-' {
		d.negative = true
		s = s[1:]
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		text := strings.TrimLeft(s[i+1:], "+-")
		exponent = atoi(text)
		if s[i+1] == '-' {
			exponent = -exponent
		}
	}
	point := false
	for i := range len(mantissa) {
		ch := mantissa[i]
		if ch == '.' {
			point = true
			continue
		}
		switch {
		case d.n > 0 || ch != '0':
			d.digit[d.n] = ch
			d.n++
			if !point {
				d.exp++
			}
		case point:
			d.exp--
		}
	}
	for d.n > 0 && d.digit[d.n-1] == '0' {
		d.n--
	}
	if d.n == 0 {
		return decimal{}, true
	}
	d.exp += exponent
	return d, true
}

// isInteger reports whether d has no fraction.
func (d *decimal) isInteger() bool { return d.exp >= d.n }

// compare returns -1, 0 or 1.
func (d *decimal) compare(e *decimal) int {
	if s, t := d.sign(), e.sign(); s != t || s == 0 {
		return max(-1, min(1, s-t))
	}
	size := max(-1, min(1, d.exp-e.exp))
	if size == 0 {
		size = bytes.Compare(d.digit[:d.n], e.digit[:e.n])
	}
	if d.negative {
		return -size
	}
	return size
}

func (d *decimal) sign() int {
	switch {
	case d.n == 0:
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// key is a text that is the same for equal numbers only.
func (d *decimal) key(dst []byte) []byte {
	if d.n == 0 {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	dst = append(dst, d.digit[:d.n]...)
	dst = append(dst, 'e')
	return big.NewInt(int64(d.exp)).Append(dst, 10)
}

// integer writes d, which has no fraction, as an integer literal.
func (d *decimal) integer() string {
	if d.n == 0 {
		return "0"
	}
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	b.Write(d.digit[:d.n])
	for range d.exp - d.n {
		b.WriteByte('0')
	}
	return b.String()
}

// isMultipleOf reports whether d / e is an integer. The literals are bounded, so the big
// numbers here have at most some hundred digits.
func (d *decimal) isMultipleOf(e *decimal) bool {
	if e.n == 0 {
		return false
	}
	shift := min(d.exp-d.n, e.exp-e.n)
	dividend, divisor := d.scaled(shift), e.scaled(shift)
	return new(big.Int).Rem(dividend, divisor).Sign() == 0
}

// scaled returns d's digits as an integer in units of 10^shift.
func (d *decimal) scaled(shift int) *big.Int {
	n, _ := new(big.Int).SetString(string(d.digit[:d.n])+strings.Repeat("0", max(0, d.exp-d.n-shift)), 10)
	if n == nil {
		return new(big.Int)
	}
	return n
}

// text writes d for a violation.
func (d *decimal) text() string {
	if d.isInteger() && d.exp <= 20 { //nolint:mnd // longer ones read better with an exponent
		return d.integer()
	}
	if !d.isInteger() && d.exp >= -6 && d.exp <= 0 { //nolint:mnd // likewise
		return d.minus() + "0." + strings.Repeat("0", -d.exp) + string(d.digit[:d.n])
	}
	if !d.isInteger() && d.exp > 0 {
		return d.minus() + string(d.digit[:d.exp]) + "." + string(d.digit[d.exp:d.n])
	}
	return d.minus() + "0." + string(d.digit[:d.n]) + "e" + big.NewInt(int64(d.exp)).String()
}

func (d *decimal) minus() string {
	if d.negative {
		return "-"
	}
	return ""
}
