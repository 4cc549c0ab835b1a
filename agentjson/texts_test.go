package agentjson_test

import (
	"strings"
	"testing"

	"github.com/oneturn/oneturn/agentjson"
)

// Texts that the acceptance cases leave out: the object, or the code of the error.

func TestTextsThatTheCasesLeaveOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1} and {"a":`:                      "truncated",
		"{ thinking {\n</think>\n{\"a\":1}":      `{"a":1}`,
		"draft {\"a\":NaN}\n</think>\n{\"a\":1}": `{"a":1}`,
		"{\"a\":\"x\n</think>\ny\"}":             `{"a":"x\n</think>\ny"}`,
		`{"a":1}, "b":2}`:                        "bad_syntax",
		`{"a":1}, and "b" too`:                   `{"a":1}`,
		`{"a":[1,2,],}`:                          `{"a":[1,2]}`,
		`{"a":[1,2, // no more` + "\n]}":         `{"a":[1,2]}`,
		`{"a":[1,2/**/,/**/],/**/}`:              `{"a":[1,2]}`,
		"{\"a\":[1,2,\u00a0]}":                   `{"a":[1,2]}`,
		`{"a":[1，2，]}`:                           `{"a":[1,2]}`,
		`{"a":[1,2,,]}`:                          "bad_syntax",
		`{"a":+-1}`:                              "bad_number",
		`{"a":-.5,"b":-5.,"c":5.e3,"d":+.5E-3}`:  `{"a":-0.5,"b":-5.0,"c":5.0e3,"d":0.5E-3}`,
		`{"a":.}`:                                "bad_number",
		`{"a":-}`:                                "bad_number",
		`{"a":-Infinity} {"a":1}`:                "bad_number",
		`{"a":1} {"a":NaN}`:                      "bad_number",
		`{名: 1}`:                                 `{"名":1}`,
		`{"a":‘it is’}`:                          `{"a":"it is"}`,
		`{"a":‘it’s’}`:                           "bad_string",
		`[{"a":1} // one` + "\n]":                `{"a":1}`,
		`[ {"a":1},{"b":2} ] {"c":3}`:            `{"c":3}`,
		`[1, {"a":1}]`:                           "not_an_object",
		`see [1] and [x](y): {"a":1}`:            `{"a":1}`,
		`"{\"a\":" is how it begins: {"a":1}`:    "bad_syntax",
		`"[{\"a\":1}]"`:                          `{"a":1}`,
		`"\"{\\\"a\\\":1}\""`:                    "not_an_object",
		`{\"a\": \"b\\n\"} and "more"`:           `{"a":"b\n"}`,
		`{"a":"\ud83d"}`:                         "bad_string",
		`{"a":{"b":` + strings.Repeat("[", 70):   "too_deep",
		"<|channel|>analysis<|message|>{\"a\":0}<|end|><|start|>assistant<|channel|>final<|message|>{\"a\":1}": `{"a":1}`,
		`{"a":"<|channel|>final<|message|>"}`:     `{"a":"<|channel|>final<|message|>"}`,
		"<|channel|>analysis<|message|>{\"a\":0}": "truncated",
		"<THINK>{\"a\":0}</Think>{\"a\":1}":       `{"a":1}`,
		"{\"a\":1}\n<think>and":                   "truncated",

		// An object that is encoded as a string.
		`{\n  \"title\": \"x\"\n}`:            `{"title":"x"}`,
		`{\"a\":1}, \"b\":2}`:                 `bad_syntax`,
		`"[{\"a\":1},]"`:                      `{"a":1}`,
		`'{"a":1}'`:                           `{"a":1}`,
		"`\"{\\\"a\\\":1}\"`":                 `{"a":1}`,
		`Result: "{\"a\":1}"`:                 `{"a":1}`,
		`"\"{}\""`:                            `not_an_object`,
		`"<think>{\"a\":0}</think>{\"a\":1}"`: `{"a":1}`,
		`{\"a\":1`:                            `truncated`,
		`{\"a\":\"\ud800\"}`:                  `bad_syntax`,
		`"{\"a\":1"`:                          `truncated`,
		`{"a":1} {\"a\":NaN}`:                 `bad_number`,

		// Lists.
		`Result: ["x",{"a":1}]`:       `not_an_object`,
		"```json\n[1,{\"a\":1}]\n```": `not_an_object`,
		"```json\n[]\n```":            `not_an_object`,
		"[ // one\n{\"a\":1}]":        `{"a":1}`,
		`[{"a":1} /* one */]`:         `{"a":1}`,
		`[{"a":1},,]`:                 `bad_syntax`,
		`[{"a":1}, ...]`:              `elided`,
		`[{"a":1}] [{"a":2}]`:         `{"a":1}`,
		`[{}]`:                        `{}`,
		`[[{}]]`:                      `not_an_object`,
		`[see {"a":1}]`:               `{"a":1}`,
		`[[1], {"a":1}`:               `truncated`,
		`[null]`:                      `not_an_object`,
		`[{"a":1}], "b":2}`:           `bad_syntax`,

		// Part of an object is never taken for the whole.
		`{a: '}', b: x, c: {"d":1}}`:        `bad_syntax`,
		`{"a": x /* } */, "b": {"c":1}}`:    `bad_syntax`,
		`{'a': x, 'b': '}', 'c': {'d': 1}}`: `bad_syntax`,
		`{"a": "x"y}", "b": {"c":1}}`:       `bad_string`,
		`{"a": {1,2}, "b": {"c":1}}`:        `bad_syntax`,
		`{"a":1}，"b":2}`:                    `bad_syntax`,
		"{\"a\":1}\u00a0, \"b\":2}":         `bad_syntax`,
		`{"a": x} {"b":1}`:                  `{"b":1}`,
		`{{"a":1}} {"b":1}`:                 `{"b":1}`,
		`{"a":1,}} and`:                     `{"a":1}`,

		`{"a":{"b":1}}}, "c":2}`:   `bad_syntax`,
		`{"a":{"b":1}}]} , "c":2}`: `bad_syntax`,
		`{"a":{"b":1}}}, c: 2}`:    `{"a":{"b":1}}`,

		// Characters.
		"\ufeff```json\n{\"a\":1}\n```": `{"a":1}`,
		" \ufeff{\"a\":1}":              `{"a":1}`,
		"{\"a\":1}\u0000":               `{"a":1}`,
		"{\"a\"\u0000:1}":               `bad_syntax`,
		"{\"a\":\"x\r\ny\"}":            `{"a":"x\r\ny"}`,
		`{"a":１}`:                       `bad_syntax`,
		`{'a':'\ud83d'}`:                `bad_string`,
		`{"a":"\ud83d\u0041"}`:          `bad_string`,
		`{"a":"\ud83d\ude00"}`:          `{"a":"😀"}`,
		"{\"a\":\"x\\\ny\"}":            `bad_string`,

		// Numbers.
		`{"a":2e308}`:    `bad_number`,
		`{"a":-1.8e308}`: `bad_number`,
		`{"a":1e308}`:    `{"a":1e308}`,
		`{"a":.1e400}`:   `bad_number`,
		`{"a":99999999999999999999999999999999999999999999999999999999999999999}`: `bad_number`,
		`{"a":9999999999999999999999999999999999999999999999999999999999999999}`:  `{"a":9999999999999999999999999999999999999999999999999999999999999999}`,
		`{"a":1.}`:  `{"a":1.0}`,
		`{"a":1..}`: `bad_number`,
		`{"a":1e}`:  `bad_number`,
		`{"a":- 1}`: `bad_number`,
		`{"a":+0}`:  `{"a":0}`,
		`{"a":-01}`: `bad_number`,

		// Names.
		`{True: 1}`:                             `bad_syntax`,
		`{true: 1}`:                             `{"true":1}`,
		`{1: 2}`:                                `no_json`,
		`{a:1 b:2}`:                             `{"a":1,"b":2}`,
		`{"a":"x" 'b':1}`:                       `{"a":"x","b":1}`,
		`{"a":"x"/*c*/"b":1}`:                   `{"a":"x","b":1}`,
		`{"a":1"b":2}`:                          `bad_syntax`,
		"{\"l\":[{\"a\":1} // one\n{\"b\":1}]}": `{"l":[{"a":1},{"b":1}]}`,
		`{a:1,"\u0061":2}`:                      `duplicate_key`,

		// Reasoning.
		"{\"a\":1}\n</think>": `no_json`,
		"<think>\n{\"a\":0}</think>{\"a\":0}</think>{\"a\":1}": `{"a":1}`,
		`◁think▷{"a":0}◁/think▷{"a":1}`:                        `{"a":1}`,
		`<|START_THINKING|>{"a":0}<|END_THINKING|>{"a":1}`:     `{"a":1}`,
		`<antThinking>{"a":0}</antThinking>{"a":1}`:            `{"a":1}`,
		`I will answer {"a":0}.</think>{"a":1}`:                `{"a":1}`,
		`<think>{"a":0}`:                                       `truncated`,
		`<thought>{"a":0}</think>{"a":1}`:                      `truncated`,
		`[THINK]x[/THINK][{"a":1}]`:                            `{"a":1}`,

		// Words that are not values.
		`{"a":[1 2]}`:   `bad_syntax`,
		`{"a": r"x"}`:   `bad_syntax`,
		`{"a": set()}`:  `bad_syntax`,
		`{"a":"x"; }`:   `bad_syntax`,
		`{"a"= 1}`:      `bad_syntax`,
		`{…}`:           `elided`,
		`{"a":"..."}`:   `{"a":"..."}`,
		`{"a":"x" "y"}`: `bad_string`,

		// Prose.
		`{%raw%}{"a":1}{%endraw%}`: `{"a":1}`,
		`Hello {{name}} {"a":1}`:   `{"a":1}`,
		`${x} {"a":1}`:             `{"a":1}`,
		`}{`:                       `truncated`,
		`{"a":1} {`:                `truncated`,
		"``` json\n{\"a\":1}\n```": `{"a":1}`,
		"```json5\n{a:1}\n```":     `{"a":1}`,
		"```json{\"a\":1}```":      `{"a":1}`,
		"```c++\n{\"a\":1}":        `{"a":1}`,
	} {
		found, err := agentjson.Extract(text, agentjson.Options{})
		requireFound(t, text, want, found, err)
	}
}
