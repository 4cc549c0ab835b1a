package events_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

// extractionDeviations are the observed texts for which MozaiksAI is wrong, and our answer.
var extractionDeviations = map[string]string{
	`{"a":"keep ,} inside"}`:                `{"a":"keep ,} inside"}`,  // MozaiksAI removes the comma from the string
	"```json\n{\"code\":\"```js```\"}\n```": "{\"code\":\"```js```\"}", // a fence in a string ends MozaiksAI's block
	`{"a":NaN}`:                             "",                        // NaN is not JSON
	`{"outer": {"x":1}, "y": }`:             "",                        // MozaiksAI takes the inner object for the whole
}

// observedLines reads the lines `left => right` of a file of observed cases.
func observedLines(t *testing.T, file string) [][2]string {
	t.Helper()
	data, err := os.ReadFile("../testdata/mozaiks/" + file)
	require.NoError(t, err)
	var all [][2]string
	for line := range strings.Lines(string(data)) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " => ")
		require.True(t, ok, line)
		all = append(all, [2]string{left, right})
	}
	require.NotEmpty(t, all)
	return all
}

func TestObservedTextsGiveTheObservedObjectOrTheRightOne(t *testing.T) {
	t.Parallel()
	deviating := 0
	for _, line := range observedLines(t, "json_extract.txt") {
		text, want := line[0], line[1]
		if strings.HasPrefix(text, `"`) { // else an object that MozaiksAI was given as it is
			var ok bool
			text, ok = mustDecode(t, text).(string)
			require.True(t, ok)
		}
		if ours, ok := extractionDeviations[text]; ok {
			want, deviating = ours, deviating+1
		}
		object, err := events.ExtractObject(text)
		if want == "null" || want == "" {
			require.ErrorIs(t, err, events.ErrBadArgs, text)
			require.Nil(t, object)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, mustDecode(t, want), object, text)
	}
	require.Len(t, extractionDeviations, deviating, "a deviation that no observed case shows")
}

func TestObjectIsFoundInWhateverSurroundsIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"```\n{\"a\":1}\n```":                         `{"a":1}`,
		"Sure:\n```JSON\n{\"a\":1}\n```\nand ```x```": `{"a":1}`,
		"json\n{\"a\":1}":                             `{"a":1}`,
		"\ufeff {\"a\":1}":                            `{"a":1}`,
		"{\"a\":[1,2,\n],\"b\":{\"c\":1 , }\t,\n}":    `{"a":[1,2],"b":{"c":1}}`,
		`{"a":"\",]","b":",\\"}`:                      `{"a":"\",]","b":",\\"}`,
		`{"a":"} {","b":"{["}`:                        `{"a":"} {","b":"{["}`,
		`{"a":"` + "```json\\n{}\\n```" + `"}`:        `{"a":"` + "```json\\n{}\\n```" + `"}`,
		`[ {"a":1}, {"b":2} ]`:                        `{"a":1}`,
		`[[{"a":1}]]`:                                 `{"a":1}`,
		`[1, {"a":1}]`:                                `{"a":1}`,
		`see [1], {name} and {"x": …}: {"a":1}`:       `{"a":1}`,
		`[{x}, {"a":1}]`:                              `{"a":1}`,
		`a "quoted" word's {"a":1}`:                   `{"a":1}`,
		`{"a":1} and {"b":`:                           `{"a":1}`,
		`{"a":1e400} {"a":1}`:                         "",
		`{"a":1,"a":2} {"a":1}`:                       "",
		`{"a":-Infinity} {"a":1}`:                     "",
		`{"a":"\ud800"} {"a":1}`:                      "",
		`{"a":` + nest(64) + `} {"a":1}`:              "",
		`{x:{"a":1}}`:                                 "",
		`{{"a":1}}`:                                   "",
		`{'a':{"b":1}}`:                               "",
		`{"a":{"b":1}`:                                "",
		`{"a":"{\"b\":1}`:                             "",
		`{"a":{"b":1}, again: {"a":{"b":1}}`:          "",
		`[{"a":1}, {"b":`:                             "",
		`[{"a":1}`:                                    "",
		`{"a":1,,}`:                                   "",
		"{\"a\":\"line\nbreak\"}":                     "",
		"{\"a\":\"\xff\"}":                            "",
		`[1,2]`:                                       "",
		`"{\"a\":1}"`:                                 "",
		``:                                            "",
		`}{`:                                          "",
		strings.Repeat(" ", events.MaxTextBytes-1) + `{"a":1}`:  "",
		strings.Repeat(" ", events.MaxTextBytes-7) + `{"a":1}`:  `{"a":1}`,
		`{"a":"` + strings.Repeat("x", 1<<19) + `"` + `,` + `}`: `{"a":"` + strings.Repeat("x", 1<<19) + `"}`,
	} {
		name := text[:min(len(text), 60)]
		object, err := events.ExtractObject(text)
		if want == "" {
			require.ErrorIs(t, err, events.ErrBadArgs, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, mustDecode(t, want), object, name)
	}
}

func TestExtractionErrorsNameThePlaceAndTheFix(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"NEXT":                     "extract object: bad_args: the text holds no JSON object: send one in braces",
		`ok {"a":{"b":1}`:          "extract object: bad_args: the text ends inside the object that starts at byte 3: send all of it",
		`ok [{"a":1}`:              "extract object: bad_args: the text ends inside the list that starts at byte 3: send all of it",
		`ok {"a":{"b":[0,NaN]}}`:   `extract object: bad_args: the object that starts at byte 3: invalid JSON at byte 16, "/a/b/1": NaN and infinity are not JSON: send null or leave the key out`,
		`{name}: {"a":1,"b":tru,}`: `extract object: bad_args: the object that starts at byte 8: invalid JSON at byte 19, "/b": expected true`,
		`{"a":1,"a":2} {"b":2}`:    `extract object: bad_args: the object that starts at byte 0: invalid JSON at byte 7, "/a": duplicate key: send each key once`,
		strings.Repeat("{", events.MaxTextBytes+1): "extract object: bad_args: the text has 1048577 bytes: send at most 1048576",
	} {
		_, err := events.ExtractObject(text)
		require.EqualError(t, err, want)
	}
}

// hostileTexts would take minutes if any part of them were read again and again.
func hostileTexts() []string {
	fill := func(s string) string { return strings.Repeat(s, events.MaxTextBytes/len(s)) }
	half := events.MaxTextBytes / 2
	return []string{
		fill("{"), fill("["), fill("[{"), fill("{x}"), fill("[{x},"), fill(`{"a":`), fill(`{"`), fill(`{"a":}`), fill(",}"), fill("[ "),
		strings.Repeat("{", half) + strings.Repeat("}", half), strings.Repeat("[{x}", half/4) + strings.Repeat("]", half/4),
		strings.Repeat("[{", half/2) + strings.Repeat("}]", half/2), `{"a":` + strings.Repeat(" ,", half-10) + "}",
		strings.Repeat(`{"a":`, half/5) + strings.Repeat("}", half/5), `{"a":[` + fill("1,")[:events.MaxTextBytes-10] + "]}", fill(`\"{`),
	}
}

func TestHostileTextsAreRefusedInLinearTime(t *testing.T) {
	t.Parallel()
	for i, text := range hostileTexts() {
		_, err := events.ExtractObject(text)
		require.ErrorIs(t, err, events.ErrBadArgs, i)
		require.Less(t, len(err.Error()), 500, i)
	}
}

func BenchmarkExtractObject(b *testing.B) {
	texts := map[string]string{"usual": "Here it is:\n```json\n" + `{"name":"Al","list":[1,2,3,],"nested":{"a":"b, }"},}` + "\n```"}
	for i, text := range hostileTexts() {
		texts["hostile"+strconv.Itoa(i)] = text
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = events.ExtractObject(text)
			}
		})
	}
}

// FuzzExtractObject checks that an object is found in its own text and in prose around it, that no
// part of it is ever taken for the whole, and that every error is a bad_args.
func FuzzExtractObject(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s)
	}
	for _, s := range []string{"```json\n{\"a\":1,}\n```", `[{"a":1}] {`, `{"a":"x, ]"}`, `{x {"a":1}}`, `{"a":NaN}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object, err := events.ExtractObject(text)
		if whole, errDecode := events.Decode([]byte(text)); errDecode == nil {
			if top, ok := whole.(map[string]any); ok {
				require.NoError(t, err)
				require.Equal(t, top, object)
			}
		}
		if err != nil {
			require.ErrorIs(t, err, events.ErrBadArgs)
			require.Nil(t, object)
			return
		}
		canonical := mustAppend(t, object)
		again, err := events.ExtractObject("Look [1] {here}:\n```json\n" + canonical + "\n``` done {")
		require.NoError(t, err)
		require.Equal(t, object, again)
		for _, cut := range []int{1, len(canonical) / 2, len(canonical) - 1} {
			_, err = events.ExtractObject(canonical[:cut])
			require.ErrorIs(t, err, events.ErrBadArgs, "the first %d bytes", cut)
		}
	})
}

func ExampleExtractObject() {
	object, err := events.ExtractObject("Here is the plan:\n```json\n{\"steps\": [\"a\", \"b\",],}\n```")
	fmt.Println(object, err)
	_, err = events.ExtractObject(`{"plan": {"steps": []}, "owner":`)
	fmt.Println(err)
	// Output:
	// map[steps:[a b]] <nil>
	// extract object: bad_args: the text ends inside the object that starts at byte 0: send all of it
}
