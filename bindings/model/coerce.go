package model

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// One table lists which value becomes which type; it has a column for MozaiksAI's models (lax) and one for JSON
// Schema. The functions below it convert one value each.

// convert turns a value of another type into the wanted one, or reports that it cannot.
type convert func(v any) (any, bool)

// conversion is the coercion table: for each wanted type its two columns.
//
//	wanted   MozaiksAI (pydantic lax, observed)          JSON Schema (engine)
//	string   -                                           -
//	integer  "5" " 5 " "+5" "1_000" "5.0", 5.0, booleans  " 5 " "-3", 5.0
//	number   5 to 5.0, "5.5" ".5" "1_0" "1e5", booleans   " 5.5 " (JSON grammar)
//	boolean  true yes on y t 1 and opposites, 1, 0, 1.0   "true" "false", any case
//	array    -                                           a string that is a JSON array
//	object   -                                           a string that is a JSON object
//
// Deviations from pydantic, because the result is JSON: "nan" and "inf" are refused, and so
// are integers whose literal would be longer than 64 characters.
func conversion(wanted types, lax bool) convert {
	switch {
	case wanted == tInteger && lax:
		return laxInteger
	case wanted == tInteger:
		return engineInteger
	case wanted == tNumber && lax:
		return laxNumber
	case wanted == tNumber:
		return engineNumber
	case wanted == tBool && lax:
		return laxBool
	case wanted == tBool:
		return engineBool
	case wanted == tArray && !lax, wanted == tObject && !lax:
		return func(v any) (any, bool) { return engineNested(v, wanted) }
	default:
		return nil
	}
}

func laxInteger(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return boolNumber(v, "1", "0"), true
	case json.Number:
		return wholeNumber(string(v))
	case string:
		return laxIntegerText(v)
	default:
		return nil, false
	}
}

func boolNumber(b bool, yes, no json.Number) json.Number {
	if b {
		return yes
	}
	return no
}

// wholeNumber reads a fraction literal without fraction. MozaiksAI refuses what does not fit
// 64 bits, so does this: a longer one was hardly meant as an integer.
func wholeNumber(lit string) (any, bool) {
	d, ok := parseDecimal(lit)
	if !ok || !d.isInteger() || d.exp > 19 {
		return nil, false
	}
	n, err := strconv.ParseInt(d.integer(), 10, 64)
	if err != nil || n == math.MinInt64 {
		return nil, false
	}
	return json.Number(strconv.FormatInt(n, 10)), true
}

// laxIntegerText reads an integer as pydantic does: trimmed, one sign, single underscores
// between digits, a fraction of zeros.
func laxIntegerText(s string) (any, bool) {
	s = strings.TrimSpace(s)
	if whole, zeros, ok := strings.Cut(s, "."); ok {
		if zeros == "" || strings.Trim(zeros, "0") != "" {
			return nil, false
		}
		s = whole
	}
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	s, ok := dropUnderscores(s)
	if !ok || digits(s, 0) != len(s) {
		return nil, false
	}
	return integerLiteralOf(s, negative)
}

// dropUnderscores removes single underscores inside s; ok is false when s is empty or one
// stands at an end or next to another.
func dropUnderscores(s string) (string, bool) {
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") {
		return "", false
	}
	return strings.ReplaceAll(s, "_", ""), true
}

// integerLiteralOf writes digits as a JSON integer: no leading zeros, no negative zero.
func integerLiteralOf(digits string, negative bool) (any, bool) {
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return json.Number("0"), true
	}
	if negative {
		digits = "-" + digits
	}
	if len(digits) > maxLiteral {
		return nil, false
	}
	return json.Number(digits), true
}

func laxNumber(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return boolNumber(v, "1.0", "0.0"), true
	case json.Number:
		if shapeOf(string(v)) != integerLiteral || len(v) > maxLiteral-2 {
			return nil, false
		}
		return v + ".0", true // a float is a float for the tool, whatever the producer wrote
	case string:
		return laxNumberText(v)
	default:
		return nil, false
	}
}

func laxNumberText(s string) (any, bool) {
	s, ok := dropUnderscores(strings.TrimSpace(s))
	if !ok || strings.Trim(s, "0123456789+-.eE") != "" {
		return nil, false // also keeps out hexadecimal, nan and inf
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, false
	}
	const large, small = 1e16, 1e-4 // where the exponent form is shorter
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size >= large || size < small) {
		format = 'e'
	}
	lit := strconv.FormatFloat(f, format, -1, 64)
	if !strings.ContainsAny(lit, ".e") {
		lit += ".0"
	}
	if shapeOf(lit) == notNumber {
		return nil, false // subnormal: the exponent is out of bounds
	}
	return json.Number(lit), true
}

func laxBool(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		d, ok := parseDecimal(string(v))
		if !ok {
			return nil, false
		}
		zero := d.n == 0
		one := d.n == 1 && d.digit[0] == '1' && d.exp == 1 && !d.negative
		return one, zero || one
	case string:
		if len(v) > len("false") {
			return nil, false
		}
		switch strings.ToLower(v) {
		case "true", "t", "yes", "y", "on", "1":
			return true, true
		case "false", "f", "no", "n", "off", "0":
			return false, true
		}
	}
	return nil, false
}

// engineInteger follows the first engine, except that booleans are not integers.
func engineInteger(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		if whole, ok := wholeNumber(string(v)); ok {
			return whole, true
		}
		d, ok := parseDecimal(string(v))
		return v, ok && d.isInteger() // larger than 64 bits: an integer as it is written
	case string:
		s := strings.TrimSpace(v)
		negative := strings.HasPrefix(s, "-")
		if negative {
			s = s[1:]
		}
		if s == "" || digits(s, 0) != len(s) {
			return nil, false
		}
		return integerLiteralOf(s, negative)
	default:
		return nil, false
	}
}

func engineNumber(v any) (any, bool) {
	s, ok := v.(string)
	if !ok {
		return nil, false
	}
	s = strings.TrimSpace(s)
	return json.Number(s), shapeOf(s) != notNumber
}

func engineBool(v any) (any, bool) {
	s, ok := v.(string)
	if !ok || len(s) > maxLiteral {
		return nil, false
	}
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true":
		return true, true
	case "false":
		return false, true
	default:
		return nil, false
	}
}

// engineNested reads a list or object that was encoded twice, which models often do.
func engineNested(v any, wanted types) (any, bool) {
	s, ok := v.(string)
	if !ok {
		return nil, false
	}
	open := byte('[')
	if wanted == tObject {
		open = '{'
	}
	if s = strings.TrimSpace(s); s == "" || s[0] != open {
		return nil, false
	}
	tree, err := events.Decode([]byte(s))
	return tree, err == nil && typeOf(tree) == wanted
}
