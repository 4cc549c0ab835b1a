package agentjson_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/events"
)

func TestErrorsNameThePlaceInTheText(t *testing.T) {
	t.Parallel()
	_, err := agentjson.Extract("Here:\n{\"ü\": \"it was \"hi\"\"}", agentjson.Options{})
	var e *agentjson.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []int{2, 16}, []int{e.Line, e.Column})
	require.Contains(t, e.Feedback(), `bad_string at line 2, column 16`)
	require.NotContains(t, e.Feedback(), "\n")
}

func TestFinishReasonOfAnUnfinishedOutputIsBelieved(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"length", "max_tokens", "MAX_TOKENS", "content_filter", "content-filter", " SAFETY ", "refusal", "error"} {
		_, err := agentjson.Extract(`{"a":1}`, agentjson.Options{FinishReason: reason})
		var e *agentjson.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, agentjson.Truncated, e.Code)
		require.Equal(t, agentjson.Incomplete(reason), e.Message)
		_, err = agentjson.ExtractContent(json.RawMessage(`{"a":1}`), agentjson.Options{FinishReason: reason})
		require.ErrorAs(t, err, &e)
	}
	for _, reason := range []string{"", "stop", "end_turn", "STOP", "tool_calls", "unheard of"} {
		require.Empty(t, agentjson.Incomplete(reason))
		_, err := agentjson.Extract(`{"a":1}`, agentjson.Options{FinishReason: reason})
		require.NoError(t, err)
	}
}

func TestModelIsAskedOnlyWhereThereIsAChoice(t *testing.T) {
	t.Parallel()
	asked := 0
	fits := func(object map[string]any) bool {
		asked++
		return object["b"] != nil
	}
	found, err := agentjson.Extract(`{"a":1}`, agentjson.Options{Fits: fits})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": json.Number("1")}, found.Object)
	require.Zero(t, asked)
	found, err = agentjson.Extract(`{"a":1} {b:1} {"b":2} {"b": 2}`, agentjson.Options{Fits: fits})
	require.NoError(t, err)
	require.JSONEq(t, `{"b":2}`, string(found.JSON))
	require.Equal(t, 4, asked)
}

func TestContentIsATextOrAnObject(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		` {"a":1} `:           `{"a":1}`,
		`[{"a":1}]`:           `{"a":1}`,
		`"{\"a\":1}"`:         `{"a":1}`,
		`"\"{\\\"a\\\":1}\""`: `{"a":1}`, // the text is itself encoded, once
		`5`:                   "not_an_object",
		`null`:                "not_an_object",
		`["{\"a\":1}"]`:       "not_an_object",
		`[{"a":1},{"a":1}]`:   "not_an_object",
		`"NEXT"`:              "no_json",
		`"\ud800 {\"a\":1}"`:  "bad_string",
		`"{\"a\":1}" x`:       "bad_syntax",
		``:                    "bad_syntax",
	} {
		found, err := agentjson.ExtractContent(json.RawMessage(content), agentjson.Options{})
		requireFound(t, content, want, found, err)
		value, err := events.Decode([]byte(content))
		if err == nil {
			found, err = agentjson.ExtractValue(value, agentjson.Options{})
			requireFound(t, content, want, found, err)
		}
	}
}

// text draws a string with all that is special to the reader in it.
func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			`"`, `'`, `\`, ",", "}", "]", "{", "[", ":", "//", "/*", "#", "True", "None", "“", "”", "’", "```", "</think>", "<think>",
			"\n", "\t", "...", "，", "\u00a0", "\u200b", "NaN", `\"`, `\\`, `, "b":`, "\ufeff",
		})), 0, 6).Draw(t, "parts")
		return strings.ToValidUTF8(strings.Join(parts, ""), "")
	})
}

func object() *rapid.Generator[map[string]any] {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			kind := rapid.IntRange(0, 5+min(depth, 2)).Draw(t, "kind")
			switch kind {
			case 0:
				return nil
			case 1:
				return rapid.Bool().Draw(t, "bool")
			case 2:
				return json.Number(strconv.Itoa(rapid.Int().Draw(t, "number")))
			case 6:
				return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
			case 7:
				return rapid.MapOfN(text(), value(depth-1), 0, 4).Draw(t, "object")
			default:
				return text().Draw(t, "text")
			}
		})
	}
	return rapid.Custom(func(t *rapid.T) map[string]any {
		return rapid.MapOfN(text(), value(3), 1, 5).Draw(t, "object")
	})
}

func TestValidJSONPassesByteForByteInsideAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(object().Draw(t, "object"))
		require.NoError(t, err)
		before := rapid.SampledFrom([]string{"", "Sure: ", "```json\n", "<think>{\"a\":0}</think>", "json ", "[1] {x} "}).Draw(t, "before")
		found, err := agentjson.Extract(before+string(data)+"\n```\nthat's it", agentjson.Options{})
		require.NoError(t, err)
		require.Equal(t, string(data), string(found.JSON))
		require.Nil(t, found.Repairs)
	})
}

func TestNoPartOfAnObjectIsTakenForIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(object().Draw(t, "object"))
		require.NoError(t, err)
		cut := rapid.IntRange(1, len(data)-1).Draw(t, "cut")
		found, err := agentjson.Extract(string(data[:cut]), agentjson.Options{})
		require.Error(t, err, "%s", found.JSON)
	})
}

// mangle writes an object as models do, without a change to its strings.
func mangle(t *rapid.T, v any) string {
	space := func() string {
		return rapid.SampledFrom([]string{"", " ", "\n", "\u00a0", " /* {\" */ ", "// it's\n", "# }\n"}).Draw(t, "space")
	}
	switch v := v.(type) {
	case nil:
		return rapid.SampledFrom([]string{"null", "None"}).Draw(t, "null")
	case bool:
		if v {
			return rapid.SampledFrom([]string{"true", "True"}).Draw(t, "true")
		}
		return rapid.SampledFrom([]string{"false", "False"}).Draw(t, "false")
	case json.Number:
		return v.String()
	case string:
		return quoted(t, v)
	case []any:
		parts := make([]string, 0, len(v))
		for _, e := range v {
			parts = append(parts, space()+mangle(t, e)+space())
		}
		return "[" + strings.Join(parts, rapid.SampledFrom([]string{",", "，"}).Draw(t, "comma")) + trailing(t, len(v)) + "]"
	case map[string]any:
		var parts []string
		for name, e := range v {
			parts = append(parts, space()+quoted(t, name)+space()+rapid.SampledFrom([]string{":", "："}).Draw(t, "colon")+space()+mangle(t, e)+space())
		}
		return "{" + strings.Join(parts, ",") + trailing(t, len(v)) + "}"
	default:
		panic(v)
	}
}

func trailing(t *rapid.T, members int) string {
	if members == 0 {
		return ""
	}
	return rapid.SampledFrom([]string{"", ",", " , \n"}).Draw(t, "trailing")
}

// quoted writes a string in one kind of quotes, with line breaks and tabs as they are.
func quoted(t *rapid.T, s string) string {
	data, err := json.Marshal(s)
	require.NoError(t, err)
	inner := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(data[1 : len(data)-1]))
	switch rapid.IntRange(0, 2).Draw(t, "quotes") {
	case 0:
		return `"` + inner + `"`
	case 1:
		return "'" + strings.ReplaceAll(inner, "'", `\'`) + "'"
	default:
		if strings.ContainsAny(s, "“”„‟") {
			return `"` + inner + `"`
		}
		return "“" + inner + "”"
	}
}

func TestRepairsNeverAlterAString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := object().Draw(t, "object")
		written := mangle(t, want)
		found, err := agentjson.Extract(written, agentjson.Options{})
		require.NoError(t, err, written)
		wantJSON, err := json.Marshal(want)
		require.NoError(t, err)
		gotJSON, err := json.Marshal(found.Object)
		require.NoError(t, err)
		require.JSONEq(t, string(wantJSON), string(gotJSON), written)
	})
}

// FuzzExtract checks that whatever is found is strict JSON, that valid JSON is found unchanged, and that what was repaired needs
// no second repair.
func FuzzExtract(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, "```json\n{'a': [1, 2,], b: “x”}\n```", `"{\"a\":1}"`, `[{"a":1},]`, `{\"a\": 1}`, "<think>{</think>{\"a\":1 // x\n}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := agentjson.Extract(text, agentjson.Options{})
		value, strict := events.Decode([]byte(text))
		if _, isObject := value.(map[string]any); strict == nil && isObject {
			require.NoError(t, err)
			require.Equal(t, strings.Trim(text, " \t\r\n"), string(found.JSON))
			require.Nil(t, found.Repairs)
		}
		if err != nil {
			var e *agentjson.Error
			require.ErrorAs(t, err, &e)
			require.LessOrEqual(t, e.Offset, len(text))
			return
		}
		again, err := agentjson.Extract(string(found.JSON), agentjson.Options{})
		require.NoError(t, err)
		require.Nil(t, again.Repairs)
		require.Nil(t, again.Around)
		require.Equal(t, string(found.JSON), string(again.JSON))
	})
}

// requireFound checks for the object that want is, or for the code of an error.
func requireFound(t *testing.T, text, want string, found agentjson.Found, err error) {
	t.Helper()
	text = text[:min(len(text), 200)]
	if strings.HasPrefix(want, "{") {
		require.NoError(t, err, text)
		require.Equal(t, compact(t, []byte(want)), compact(t, found.JSON), text)
		return
	}
	var e *agentjson.Error
	require.ErrorAs(t, err, &e, text)
	require.Equal(t, agentjson.Code(want), e.Code, "%s: %s", text, e.Message)
	require.ErrorIs(t, err, events.ErrBadArgs)
}

func compact(t *testing.T, data []byte) string {
	t.Helper()
	value, err := events.Decode(data)
	require.NoError(t, err)
	out, err := events.AppendJSON(nil, value)
	require.NoError(t, err)
	return string(out)
}

func ExampleExtract() {
	found, err := agentjson.Extract("Here is the plan:\n```json\n{title: 'Tea shop', \"steps\": [\"buy\", \"sell\",]}\n```", agentjson.Options{})
	fmt.Println(string(found.JSON), found.Repairs, found.Around, err)
	_, err = agentjson.Extract(`{"title": "Tea shop", "steps": ["buy", "se`, agentjson.Options{})
	fmt.Println(err)
	// Output:
	// {"title": "Tea shop", "steps": ["buy", "sell"]} [trailing_comma single_quotes unquoted_key] [prose fence] <nil>
	// extract object: truncated at line 1, column 43: the text ends inside an object: send all of it
}
