package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestDecodeMakesValueTreesThatKeepTheSpellingOfNumbers(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]any{
		`null`:                     nil,
		" \t\r\n true \n":          true,
		`false`:                    false,
		`""`:                       "",
		`{}`:                       map[string]any{},
		`[ ]`:                      []any{},
		`-0`:                       number("-0"),
		`1.0`:                      number("1.0"),
		`12345678901234567890123`:  number("12345678901234567890123"),
		`-1.5E+308`:                number("-1.5E+308"),
		`1e-0308`:                  number("1e-0308"),
		strings.Repeat("9", 64):    number(strings.Repeat("9", 64)),
		`"a\"\\\/\b\f\n\r\tz"`:     "a\"\\/\b\f\n\r\tz",
		`"\u0000\u00e9\uFFFD"`:     "\x00é\uFFFD",
		`"\ud83d\uDE00😀"`:          "😀😀",
		`"éж€"`:                    "éж€",
		"\"\u2028<>&\"":            "\u2028<>&",
		`[1, "a", [null], {"":0}]`: []any{number("1"), "a", []any{nil}, map[string]any{"": number("0")}},
		`{"a":{"b":[1]},"A":2}`:    map[string]any{"a": map[string]any{"b": []any{number("1")}}, "A": number("2")},
	} {
		got, err := events.Decode([]byte(doc))
		require.NoError(t, err, doc)
		require.Equal(t, want, got, doc)
	}
}

func TestDecodeNamesThePlaceOfWhatItRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		doc     string
		offset  int64
		pointer string
		reason  string
	}{
		{``, 0, "", "ends where a value"},
		{` `, 1, "", "ends where a value"},
		{`{"a":1} x`, 8, "", "one document"},
		{`{} {}`, 3, "", "one document"},
		{"\xef\xbb\xbf{}", 0, "", "byte 0xef"},
		{`nul`, 0, "", "expected null"},
		{`NaN`, 0, "", "byte 0x4e"},
		{`-Infinity`, 1, "", "a digit"},
		{`'a'`, 0, "", "byte 0x27"},
		{`{a:1}`, 1, "", "double quotes"},
		{`{"a" 1}`, 5, "", "':'"},
		{`{"a":1,}`, 7, "", "double quotes"},
		{`{"a":1`, 6, "", "'}'"},
		{`{"a":[1,]}`, 8, "/a/1", "byte 0x5d"},
		{`{"a":[1 2]}`, 8, "/a", "']'"},
		{`{"a":1,"b":{"c":2,"c":3}}`, 18, "/b/c", "duplicate key"},
		{`{"a":1,"\u0061":2}`, 7, "/a", "duplicate key"},
		{`{"x/y~z":[0,{"k":tru}]}`, 17, "/x~1y~0z/1/k", "expected true"},
		{`["ok","` + "a\xffb" + `"]`, 8, "/1", "UTF-8"},
		{`{"` + "\xc3\x28" + `":1}`, 2, "", "UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "", "UTF-8"}, // a surrogate in UTF-8
		{"\"\xc0\xaf\"", 1, "", "UTF-8"},     // overlong
		{`"\ud800"`, 1, "", "lone surrogate"},
		{`"a\udc00b"`, 2, "", "lone surrogate"},
		{`"\ud83d\ud83d"`, 1, "", "lone surrogate"},
		{`"\ud83dx"`, 1, "", "lone surrogate"},
		{`"\u12g4"`, 1, "", "hex digits"},
		{`"\u12"`, 1, "", "hex digits"},
		{`"\x"`, 1, "", "unknown escape"},
		{`"\`, 2, "", "ends inside a string"},
		{`"abc`, 4, "", "ends inside a string"},
		{"\"a\nb\"", 2, "", "control character"},
		{"\"a\x00b\"", 2, "", "control character"},
		{`01`, 1, "", "one document"},
		{`[01]`, 2, "", "']'"},
		{`+1`, 0, "", "byte 0x2b"},
		{`.5`, 0, "", "byte 0x2e"},
		{`1.`, 2, "", "after '.'"},
		{`1e`, 2, "", "exponent"},
		{`1e+`, 3, "", "exponent"},
		{`[1e309]`, 3, "/0", "exponent over 308"},
		{`1e-309`, 3, "", "exponent over 308"},
		{`{"n":1e9999999}`, 7, "/n", "exponent over 308"},
		{`[0,` + strings.Repeat("9", 65) + `]`, 3, "/1", "64 characters"},
		{nest(65), 64, strings.Repeat("/0", 64), "64 deep"},
		{strings.Repeat(`{"a":`, 65), 320, strings.Repeat("/a", 64), "64 deep"},
	} {
		v, err := events.Decode([]byte(c.doc))
		require.Nil(t, v, c.doc)
		var syntax *events.SyntaxError
		require.ErrorAs(t, err, &syntax, c.doc)
		require.Equal(t, c.offset, syntax.Offset, "%s: %v", c.doc, err)
		require.Equal(t, c.pointer, syntax.Pointer, "%s: %v", c.doc, err)
		require.Contains(t, syntax.Reason, c.reason, c.doc)
	}
}

func TestDecodeBoundsDepthAndNodesExactly(t *testing.T) {
	t.Parallel()
	_, err := events.Decode([]byte(nest(events.MaxDepth)))
	require.NoError(t, err)

	list := func(n int) []byte { return []byte("[0" + strings.Repeat(",0", n-1) + "]") }
	_, err = events.Decode(list(events.MaxNodes - 1)) // the array itself is a node
	require.NoError(t, err)
	_, err = events.Decode(list(events.MaxNodes))
	require.ErrorContains(t, err, "100000 values")
}

func TestDecodeRefusesHugeHostileInputWithAShortError(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, doc := range map[string]string{
		"brackets": strings.Repeat("[", mib),
		"arrays":   "[" + strings.Repeat("[],", mib/3) + "0]",
		"digits":   strings.Repeat("9", mib),
		"exponent": "1e" + strings.Repeat("9", mib),
	} {
		_, err := events.Decode([]byte(doc))
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 512, name)
	}
	s := strings.Repeat("a", mib)
	require.Equal(t, s, mustDecode(t, `"`+s+`"`))
}

func TestDecodeDoesNotShareMemoryWithItsInput(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"key":"value","n":12}`)
	v, err := events.Decode(doc)
	require.NoError(t, err)
	clear(doc)
	require.Equal(t, map[string]any{"key": "value", "n": number("12")}, v)
}

func TestSyntaxErrorShowsNoValuesAndLittleOfLongKeys(t *testing.T) {
	t.Parallel()
	_, err := events.Decode([]byte(`{"` + strings.Repeat("k", 5000) + `":"secret\x"}`))
	require.NotContains(t, err.Error(), "secret")
	require.Less(t, len(err.Error()), 512)
}
