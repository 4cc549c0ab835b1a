package expression_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"testing"
	"unicode/utf8"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff/expression"
)

// Whatever a condition and its values are: no panic, an error with code, position and fix, a result that does not
// change, and white space and parentheses around a condition that mean nothing.
func FuzzExpression(f *testing.F) {
	for _, c := range []string{
		`${a} == "x" and (len(${b}) > 0x1F or not ${c})`, `!${a} & ${b} | -1.5e3 < ${n} <= 1_000`, `'\x41\u00e9\777\q${'`,
		`${a}&&${b}`, `a in [1]`, `f'{1}'`, `((((`, "${größe}\n!= None", `1j`, `...`, `len(`, `'''`,
	} {
		f.Add(c, `{"a": "x", "b": [1], "c": null, "n": -1.5, "größe": {"k": true}}`)
	}
	f.Fuzz(func(t *testing.T, text, context string) {
		value, err := events.Decode([]byte(context))
		variables, ok := value.(map[string]any)
		if err != nil || !ok {
			variables = map[string]any{"a": context, "b": json.Number("12")}
		}
		e, err := expression.Parse(text)
		if err != nil {
			checkError(t, text, err, true)
			return
		}
		got, err := e.Eval(variables)
		if err != nil {
			checkError(t, text, err, false)
		}
		if len(text) > expression.MaxBytes-4 {
			return
		}
		wrapped, errWrapped := expression.Parse(" (" + text + ") ")
		if errWrapped != nil {
			var known *expression.Error
			if !errors.As(errWrapped, &known) || known.Code != expression.CodeTooLarge {
				t.Fatalf("%q in parentheses: %v", text, errWrapped)
			}
			return
		}
		again, errAgain := wrapped.Eval(variables)
		if got != again || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q: %v, %v; in parentheses: %v, %v", text, got, err, again, errAgain)
		}
	})
}

func checkError(t *testing.T, text string, err error, load bool) {
	t.Helper()
	var known *expression.Error
	if !errors.As(err, &known) {
		t.Fatalf("%q: untyped error %v", text, err)
	}
	if known.AtLoad() != load || known.Message == "" || known.Fix == "" || known.Column < 0 || known.Column > utf8.RuneCountInString(text)+1 {
		t.Fatalf("%q: %#v", text, known)
	}
}

// Numbers compare as exact fractions do.
func FuzzNumbers(f *testing.F) {
	f.Add("1", "1.0")
	f.Add("-0.10", "1e-1")
	f.Add("9007199254740993", "9007199254740992.5E0")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := exact(a)
		y, okY := exact(b)
		if !okX || !okY {
			return
		}
		variables := map[string]any{"a": json.Number(a), "b": json.Number(b)}
		for operator, want := range map[string]bool{
			"==": x.Cmp(y) == 0, "!=": x.Cmp(y) != 0, "<": x.Cmp(y) < 0, "<=": x.Cmp(y) <= 0, ">": x.Cmp(y) > 0, ">=": x.Cmp(y) >= 0,
		} {
			e, err := expression.Parse("${a} " + operator + " ${b}")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Eval(variables); err != nil || got != want {
				t.Fatalf("%s %s %s: %v, %v", a, operator, b, got, err)
			}
		}
	})
}

// exact reads a short JSON number.
func exact(text string) (*big.Rat, bool) {
	if len(text) > 30 || !json.Valid([]byte(text)) || (text[0] != '-' && (text[0] < '0' || text[0] > '9')) {
		return nil, false
	}
	if _, err := json.Number(text).Float64(); err != nil {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
