package expression

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/nearest"
)

// Eval returns the truth of the condition over variables, a value tree (nil, bool, string, json.Number, []any,
// map[string]any). Every variable that the condition names has to exist, evaluated or not. The error is an [*Error]
// with one of the codes of Eval.
func (e *Expression) Eval(variables map[string]any) (bool, error) {
	s := scope{values: make([]any, len(e.variables)), sizes: make([]int, len(e.variables))}
	for i, name := range e.variables {
		value, ok := variables[name]
		if !ok {
			return false, &Error{Code: CodeUnknownVariable, Column: e.places[i], Message: "unknown variable " + shown(name), Fix: unknownFix(name, variables)}
		}
		if _, ok := operandOf(value); !ok {
			return false, &Error{Code: CodeType, Column: e.places[i], Message: fmt.Sprintf("variable %s has a value of the Go type %T", shown(name), value), Fix: "use a value as package events decodes it"}
		}
		s.values[i], s.sizes[i] = value, -1
	}
	result, err := e.root.eval(&s)
	if err != nil {
		return false, err
	}
	return result.truth(), nil
}

func unknownFix(name string, variables map[string]any) string {
	known := slices.Sorted(maps.Keys(variables))
	rule := nearest.Rule{Fold: strings.ToLower, Edits: func(_, candidate string) int { return (len(candidate) + 1) / 3 }}
	if near := nearest.Of(name, known, rule); near != "" {
		return "did you mean ${" + near + "}?"
	}
	return "declare it as a context variable, or correct the name"
}

// scope has the values of the variables, by their numbers.
type scope struct {
	values []any
	sizes  []int // len of each, -1 if not yet counted
}

// node is a part of a condition.
type node interface {
	eval(s *scope) (operand, *Error)
}

type (
	constant  struct{ operand }
	reference int
	length    int
	negation  struct{ inner node }
	either    []node
	both      []node
	minus     struct {
		inner  node
		column int
	}
	comparison struct {
		first node
		rest  []step
	}
	// step is one operator of a chain and the value after it.
	step struct {
		operator string
		column   int
		right    node
	}
)

func (c constant) eval(*scope) (operand, *Error) { return c.operand, nil }

func (r reference) eval(s *scope) (operand, *Error) {
	value, _ := operandOf(s.values[r])
	return value, nil
}

func (l length) eval(s *scope) (operand, *Error) {
	if s.sizes[l] < 0 {
		s.sizes[l] = sizeOf(s.values[l])
	}
	return whole(s.sizes[l]), nil
}

func (n negation) eval(s *scope) (operand, *Error) {
	inner, err := n.inner.eval(s)
	return boolean(!inner.truth()), err
}

// eval of or is the first true value, else the last one.
func (e either) eval(s *scope) (last operand, err *Error) {
	for _, n := range e {
		if last, err = n.eval(s); err != nil || last.truth() {
			break
		}
	}
	return last, err
}

// eval of and is the first false value, else the last one.
func (b both) eval(s *scope) (last operand, err *Error) {
	for _, n := range b {
		if last, err = n.eval(s); err != nil || !last.truth() {
			break
		}
	}
	return last, err
}

func (m minus) eval(s *scope) (operand, *Error) {
	inner, err := m.inner.eval(s)
	if err == nil && inner.kind != numberKind {
		err = &Error{Code: CodeType, Column: m.column, Message: "minus before " + inner.String(), Fix: "remove it, or use a variable that is a number"}
	}
	inner.number = inner.number.negated()
	return inner, err
}

// eval stops at the first comparison of a chain that is false.
func (c comparison) eval(s *scope) (operand, *Error) {
	left, err := c.first.eval(s)
	for _, next := range c.rest {
		if err != nil {
			break
		}
		var right operand
		if right, err = next.right.eval(s); err != nil {
			break
		}
		holds, ok := left.compare(next.operator, right)
		switch {
		case !ok:
			err = &Error{
				Code: CodeType, Column: next.column, Message: fmt.Sprintf("%s between %s and %s, which have no order", next.operator, left, right),
				Fix: "compare values of the same type; use == or != for others",
			}
		case !holds:
			return boolean(false), nil
		}
		left = right
	}
	return boolean(true), err
}
