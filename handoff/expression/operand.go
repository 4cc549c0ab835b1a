package expression

import (
	"cmp"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

type kind int

const (
	noneKind   kind = iota
	numberKind      // booleans, too
	textKind
)

// operand is a value while a condition is evaluated.
type operand struct {
	kind   kind
	number decimal
	text   string
}

func boolean(b bool) operand {
	if b {
		return whole(1)
	}
	return operand{kind: numberKind}
}

func whole(n int) operand {
	d, _ := parseDecimal(strconv.Itoa(n))
	return operand{kind: numberKind, number: d}
}

// operandOf converts a value of the context. It reports false for a value that is not a value tree.
func operandOf(value any) (operand, bool) {
	switch v := value.(type) {
	case nil:
		return operand{}, true
	case bool:
		return boolean(v), true
	case string:
		return operand{kind: textKind, text: v}, true
	case json.Number:
		d, ok := parseDecimal(v.String())
		return operand{kind: numberKind, number: d}, ok
	case []any:
		return boolean(len(v) > 0), true
	case map[string]any:
		return boolean(len(v) > 0), true
	}
	return operand{}, false
}

// sizeOf is len(value): 0 for what has no length.
func sizeOf(value any) int {
	switch v := value.(type) {
	case string:
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

func (o operand) truth() bool {
	switch o.kind {
	case numberKind:
		return !o.number.zero()
	case textKind:
		return o.text != ""
	case noneKind:
	}
	return false
}

// compare applies an operator. It reports false if the operands have no order.
func (o operand) compare(operator string, p operand) (result, ok bool) {
	order := 0
	switch {
	case o.kind != p.kind:
		return operator == "!=", operator == "==" || operator == "!="
	case o.kind == numberKind:
		order = o.number.compare(p.number)
	case o.kind == textKind:
		order = cmp.Compare(o.text, p.text) // UTF-8 has the order of code points
	case operator != "==" && operator != "!=":
		return false, false
	}
	switch operator {
	case "==":
		return order == 0, true
	case "!=":
		return order != 0, true
	case "<":
		return order < 0, true
	case "<=":
		return order <= 0, true
	case ">":
		return order > 0, true
	}
	return order >= 0, true
}

// String names the type of the operand.
func (o operand) String() string {
	switch o.kind {
	case numberKind:
		return "a number or boolean"
	case textKind:
		return "a text"
	case noneKind:
	}
	return "None"
}
