package expression

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// decimal is an exact number: 0.digits × 10^exponent. The digits have no zeros at their ends, and zero has none,
// so equal numbers are equal structs. Numbers are only compared, so an exponent may be of any size.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// maxExponent is where exponents are cut: no number of a context is that large.
const maxExponent = math.MaxInt32

// parseDecimal reads a number as JSON and Python write it, without underscores. It reports false for any other text.
func parseDecimal(text string) (decimal, bool) {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, power := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, power = text[:i], text[i+1:]
		if sign := strings.TrimLeft(power, "+-"); len(power)-len(sign) > 1 || !digits(sign) {
			return decimal{}, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if !digits(all) {
		return decimal{}, false
	}
	exponent, _ := strconv.ParseInt(power, 10, 32) // the nearest limit if it is out of range, 0 if there is none
	d.digits = strings.TrimLeft(all, "0")
	d.exponent = int(exponent) + len(whole) - (len(all) - len(d.digits))
	d.digits = strings.TrimRight(d.digits, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	d.exponent = max(-maxExponent, min(d.exponent, maxExponent))
	return d, true
}

// digits reports whether text consists of at least one digit.
func digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

func (d decimal) zero() bool { return d.digits == "" }

func (d decimal) negated() decimal {
	d.negative = !d.negative && !d.zero()
	return d
}

// compare gives -1, 0 or 1.
func (d decimal) compare(o decimal) int {
	switch {
	case d.sign() != o.sign():
		return cmp.Compare(d.sign(), o.sign())
	case d.negative:
		d, o = o, d // of two negative numbers the larger magnitude is less
	}
	return cmp.Or(cmp.Compare(d.exponent, o.exponent), cmp.Compare(d.digits, o.digits))
}

func (d decimal) sign() int {
	switch {
	case d.zero():
		return 0
	case d.negative:
		return -1
	}
	return 1
}
