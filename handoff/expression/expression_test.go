package expression_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/handoff/expression"
)

func TestResultsOfExpressions(t *testing.T) {
	t.Parallel()
	variables := map[string]any{
		"n": json.Number("9007199254740993"), "huge": json.Number("1e308"), "tiny": json.Number("-1e-308"),
		"s": "a\nb", "class": "c", "l": []any{nil}, "t": true, "none": nil, "quote": `' or True or '`,
		"reference": "${t}", "emoji": "👍🏽",
	}
	for text, want := range map[string]bool{
		`${n} == 9007199254740993`:                             true,
		`${n} == 9007199254740992`:                             false,
		`${n} == 0x20000000000001`:                             true,
		`${n} == 9_007_199_254_740_993.0e+00`:                  true,
		`${huge} < 1e309 and ${huge} < 1e99999999999999999999`: true,
		`-1e99999999999999999999 < ${tiny} < 0 < 1e-99999999`:  true,
		`${tiny} > -0x1 and ${tiny} != -0.0`:                   true,
		`-0 == 0 == 0.0 == 00 == -0e5 == False`:                true,
		`0.1 == 1e-1 == .1 == 1_0.0E-2`:                        true,
		`1 < 2 < 3 > 2 >= 2 != 3`:                              true,
		`1 < 3 < 2`:                                            false,
		`2 < 1 < 'x'`:                                          false, // the rest of a false chain is not compared
		`${s} == 'a\nb' == "a\x0ab" == 'a\012b'`:               true,
		`${s} == "a\` + "\n" + `\nb"`:                          true, // continued on the next line
		`'\q' == "\\q" and '\'' == "'"`:                        true,
		`${quote} == "' or True or '"`:                         true,
		`${reference} == '$\x7bt}'`:                            true,
		`${class} == 'c' & !${none}`:                           true,
		`(${none} or ${class}) == 'c'`:                         true, // or gives a value
		`(${t} and 5) == 5`:                                    true,
		`${none} == False or ${none} == 0 or ${none} == ''`:    false,
		`${none} == None == None`:                              true,
		`${l} == True == 1 and len( ${l} ) == 1 != len (${t})`: true,
		`len(${emoji}) == 2 == len(${emoji})`:                  true,
		`-${t} == -1`:                                          true,
		`not ${none} == ${t}`:                                  true,
		`1and 2`:                                               true,
		"(\t${t}\r\n\fand\n'x'or ${none})":                     true,
	} {
		e, err := expression.Parse(text)
		require.NoError(t, err, text)
		got, err := e.Eval(variables)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, e.String())
	}
}

func TestErrorsOfExpressionsNamePositionAndFix(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`${größe} == true`:        `character 13: name "true" without ${}: write True`,
		`done`:                    `character 1: name "done" without ${}: write ${done} for the variable, or quotes around it for the text`,
		`${a}&${b}`:               `character 5: & without spaces around it: write and, or a space on each side of it`,
		`${a} && ${b}`:            `character 6: "&&" after a value: write and`,
		`${ done }`:               `character 1: " done " within ${} is not a name: write ${done}`,
		`"${s}" == "x"`:           `character 2: "${s}" is within quotes: remove the quotes around it; for the text itself write '$\x7b'`,
		`'a' in ${l}`:             `character 5: "in" after a value: compare with each value: ${x} == 'a' or ${x} == 'b'`,
		`${l}[0] == 1`:            `character 5: "[" after a value: let a tool set a variable with the part`,
		`LEN(${l}) == 1`:          `character 1: function "LEN": write len in lower case`,
		`${n} == 1j`:              `character 9: imaginary number "1j": remove the j`,
		`${n} == 007`:             `character 9: number "007" has leading zeros: write 7, or 0o… for an octal number`,
		`${n} == 5kg`:             `character 9: "5kg" is not a number: put a space or an operator between them, or quotes around a text`,
		`${s} == '\ud83d'`:        `character 10: half a character: "\\ud83d": write the character itself, or \U and its 8 digits`,
		`${s} == '\uzzzz'`:        `character 10: invalid escape "\\uzzzz": write 4 hexadecimal digits of a character`,
		`${s} == '\U00110000'`:    `character 10: invalid escape "\\U00110000": write 8 hexadecimal digits of a character`,
		`${s} == '\x'`:            `character 10: incomplete escape "\\x'": add the missing digits`,
		`${s} == r'a'`:            `character 9: prefix r of a text: remove r before the quote`,
		`${s} == '''a'''`:         `character 11: "'a'" after a value: put an operator such as and between the two values`,
		`${s} == 'a' 'b'`:         `character 13: "'b'" after a value: put an operator such as and between the two values`,
		`${s} == ...`:             `character 9: "." where a value has to be: write a variable ${name}, a text in quotes, a number, True, False or None`,
		`${s} == not ${t}`:        `character 9: "not" where a value has to be: put parentheses around not and what follows it`,
		`(${s}`:                   `character 1: ( is not closed: add )`,
		`${s})`:                   `character 5: ")" after a value: remove it, or add (`,
		`if you agree`:            `character 1: "if" where a value has to be: write a variable ${name}, a text in quotes, a number, True, False or None`,
		`len(${s}, 1)`:            `character 1: len takes one variable: write len(${name})`,
		"${a} == \xff":            `character 9: byte 0xFF is not UTF-8: save the file as UTF-8`,
		"'\xff'":                  `character 1: the text is not UTF-8: save the file as UTF-8`,
		"${a\u00a0}":              "character 1: \"a\\u00a0\" within ${} is not a name: write ${a}",
		"'a\nb'":                  `character 1: the text is not closed: add ' after the text; write \n for a line break in it`,
		strings.Repeat(" ", 4097): `the condition is longer than 4 KiB: split it into several rules, or let a tool set one variable`,
	} {
		_, err := expression.Parse(text)
		require.EqualError(t, err, want, text)
	}
	e, err := expression.Parse(`${secret} > 5`)
	require.NoError(t, err)
	_, err = e.Eval(map[string]any{"secret": "hunter2"})
	require.EqualError(t, err, `character 11: > between a text and a number or boolean, which have no order: compare values of the same type; use == or != for others`)
	_, err = e.Eval(map[string]any{"secret": 1.5})
	require.ErrorContains(t, err, "Go type float64")
	_, err = e.Eval(nil)
	require.ErrorContains(t, err, `unknown variable "secret"`)
}

func TestExpressionsOfAHundredLevelsAreTheDeepest(t *testing.T) {
	t.Parallel()
	for name, nest := range map[string]func(n int) string{
		"parentheses": func(n int) string { return strings.Repeat("(", n) + "True" + strings.Repeat(")", n) },
		"not":         func(n int) string { return strings.Repeat("not ", n) + "True" },
		"minus":       func(n int) string { return strings.Repeat("-", n) + "1" },
		"bang":        func(n int) string { return strings.Repeat("!(", n/2) + "1" + strings.Repeat(")", n/2) },
	} {
		e, err := expression.Parse(nest(expression.MaxDepth))
		require.NoError(t, err, name)
		got, err := e.Eval(nil)
		require.NoError(t, err)
		require.True(t, got, name)
		_, err = expression.Parse(nest(expression.MaxDepth + 2))
		var known *expression.Error
		require.ErrorAs(t, err, &known, name)
		require.Equal(t, expression.CodeTooLarge, known.Code)
	}
}

func TestLargeValuesAreCountedOnce(t *testing.T) {
	t.Parallel()
	e, err := expression.Parse(strings.TrimSuffix(strings.Repeat("len(${s})==0 or ", 250), " or "))
	require.NoError(t, err)
	text := strings.Repeat("é", 8<<20) // 250 counts would take seconds
	got, err := e.Eval(map[string]any{"s": text})
	require.NoError(t, err)
	require.False(t, got)
}
