package hostile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// size of the largest message that the server takes by default.
const mebi = 1 << 20

// bodies are the hostile messages of rows H02 to H05, by name. Whatever they are, decoding them
// must stay within the budget; want is whether they are turns.
func bodies() []struct {
	name, body string
	turn       bool
} {
	type hostile = struct {
		name, body string
		turn       bool
	}
	data := func(name, data string, turn bool) hostile { return hostile{name, string(raw("c", "k", data)), turn} }
	fill := func(unit string) string { return strings.Repeat(unit, (mebi-1024)/len(unit)) }
	list := func(unit string, n int) string { return "[" + strings.Repeat(unit+",", n-1) + unit + "]" }
	var deepKeys strings.Builder
	for range 63 {
		deepKeys.WriteString(`{"` + strings.Repeat("~", mebi/64-32) + `":`)
	}
	all := []hostile{
		data("H02 10,001 deep", strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001), false),
		data("H02 a mebibyte deep", fill("["), false),
		data("H02 objects in objects", fill(`{"a":`), false),
		data("H02 as deep as allowed, and as wide", strings.Repeat("[", 55)+list("0", 99_800)+strings.Repeat("]", 55), true),
		data("H02 one level too deep", strings.Repeat("[", 57)+list("0", 99_800)+strings.Repeat("]", 57), false),
		data("H02 too many values", list("0", 200_000), false),
		data("H02 many empty objects", list("{}", 99_800), true),
		data("H02 many keys", keys(60_000), true),
		data("H02 keys that are nearly a message", `{"`+fill("k")+`":1}`, true),
		data("H02 a string that is nearly a message", `"`+fill("x")+`"`, true),
		data("H02 nothing but escapes", `"`+fill(`\u0041`)+`"`, true),
		data("H02 nothing but quotes", `"`+fill(`\"`)+`"`, true),
		data("H02 long keys above a fault deep down", deepKeys.String()+"x", false),
		{"H02 two documents", `{"kind":"structured_output_ready"} {"kind":"cancel"}`, false},
		{"H02 white space", fill(" "), false},
		{"H02 white space and a turn", fill(" ") + string(raw("c", "k", "{}")), true},
		data("H03 invalid UTF-8", "\"\xff\xfe\"", false),
		data("H03 half a surrogate pair", `"\ud800"`, false),
		data("H03 halves of pairs, a mebibyte of them", `"`+fill(`\ud83d\ude00`)+`\ud800"`, false),
		data("H03 overlong NUL", "\"\xc0\x80\"", false),
		data("H03 a mebibyte of one invalid byte at the end", `"`+fill("é")+"\xff\"", false),
		data("H04 duplicate key", `{"a":1,"a":2}`, false),
		data("H04 duplicate key by an escape", `{"a":1,"\u0061":2}`, false),
		data("H04 duplicate key after many", `{`+strings.TrimSuffix(strings.TrimPrefix(keys(50_000), "{"), "}")+`,"k0":1}`, false),
		data("H04 keys that differ in case", `{"a":1,"A":2,"ａ":3}`, true),
		{"H04 two chats", strings.Replace(string(raw("c", "k", "{}")), `"chat_id"`, `"chat_id":"evil","chat_id"`, 1), false},
		data("H05 20 digits", `12345678901234567890`, true),
		data("H05 1e400", `1e400`, false),
		data("H05 1e9999999", `{"text":1e9999999}`, false),
		data("H05 -1e-9999999", `-1e-9999999`, false),
		data("H05 exponent of a mebibyte", `1e`+fill("9"), false),
		data("H05 a mebibyte of digits", fill("9"), false),
		data("H05 a mebibyte of decimals", "0."+fill("0")+"1", false),
		data("H05 many numbers at the limit", list("1"+strings.Repeat("0", 8)+"e299", 70_000), true),
		data("H05 -0", `-0`, true),
		data("H05 NaN", `NaN`, false),
		data("H05 Infinity", `-Infinity`, false),
		data("H05 hexadecimal", `0x10`, false),
		data("H05 leading zero", `01`, false),
	}
	for i := range all {
		if len(all[i].body) > mebi {
			all[i].body = all[i].body[:mebi]
		}
	}
	return all
}

// keys is an object of n keys.
func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// TestH02H03H04H05MessagesAreDecodedWithinTheirBudget: with everything a worker does before it
// claims a turn, and a short error for what is none.
func TestH02H03H04H05MessagesAreDecodedWithinTheirBudget(t *testing.T) { //nolint:paralleltest // measures the process
	for _, b := range bodies() {
		var err error
		within(t, b.name, func() {
			var m *events.Message
			if m, err = events.Parse([]byte(b.body)); err != nil {
				return
			}
			var turn *events.StructuredOutputReady
			if turn, err = m.Turn(); err == nil {
				events.Fingerprint(turn)
			}
		})
		if b.turn {
			require.NoError(t, err, b.name)
			continue
		}
		require.ErrorIs(t, err, events.ErrBadArgs, b.name)
		require.Less(t, len(err.Error()), 1024, b.name)
	}
}

// TestH02H03H04H05MessagesEndAsResponseOrDeadLetter: the same messages, sent to a worker.
func TestH02H03H04H05MessagesEndAsResponseOrDeadLetter(t *testing.T) { //nolint:paralleltest // holds much memory
	l := newLab(t)
	responses := 0
	for i, b := range bodies() {
		key := strconv.Itoa(i)
		body := strings.Replace(b.body, `"turn_idempotency_key":"k"`, `"turn_idempotency_key":"`+key+`"`, 1)
		if limit := int(l.nc.MaxPayload()) - 256; len(body) > limit {
			body = body[:limit]
		}
		_, err := events.DecodeTurn([]byte(body))
		addressee, named := events.Addressee([]byte(body), events.KindStructuredOutputReady)
		l.send("c", nil, []byte(body))
		if err != nil && !named {
			l.letter("undecodable")
			continue
		}
		id := turn("c", key).TurnID
		if err != nil {
			id = oneturn.TurnID(addressee.TurnID)
		}
		r := l.await(id)
		require.Equal(t, events.CodeValidationFailed, r.Code, b.name)
		answer, err := json.Marshal([]any{r.Content, r.Payload})
		require.NoError(t, err)
		require.Less(t, len(answer), 16<<10, b.name)
		responses++
	}
	l.drained() // a response is seen before it is counted
	require.Equal(t, responses, l.metric("oneturn_turns_total"))
	require.Zero(t, l.metric("oneturn_redeliveries_total"))
	l.goesOn()
	l.drained()
}

// TestH06H07H08H09SchemasAreJudgedWithinTheirBudget: refused, or compiled and then harmless.
func TestH06H07H08H09SchemasAreJudgedWithinTheirBudget(t *testing.T) { //nolint:paralleltest // measures the process
	deep := any("x")
	for range 55 {
		deep = []any{deep}
	}
	wide := make([]any, 60_000)
	for i := range wide {
		wide[i] = map[string]any{}
	}
	inputs := []any{
		nil, "x", number("1"),
		map[string]any{},
		map[string]any{"a": deep},
		map[string]any{"a": wide},
		map[string]any{"a": strings.Repeat("a", 200_000) + "!"},
		map[string]any{"x": map[string]any{"x": map[string]any{}}},
	}
	for _, s := range []struct{ name, schema string }{
		{"H06 a reference to itself", `{"$ref":"#"}`},
		{"H06 a circle", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`},
		{"H06 a circle by alternatives", `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"object"}]}},"$ref":"#/$defs/a"}`},
		{"H06 every level again", `{"type":"object","properties":{"x":{"$ref":"#"},"a":{"items":{"$ref":"#"}}}}`},
		{"H06 two ways down at every level", `{"anyOf":[{"type":"object","properties":{"x":{"$ref":"#"}}},{"type":"object","properties":{"x":{"$ref":"#"}},"required":["y"]}]}`},
		{"H07 a file", `{"$ref":"file:///etc/passwd"}`},
		{"H07 the network", `{"$ref":"http://127.0.0.1:1/schema.json"}`},
		{"H07 with it", `{"$ref":"other.json"}`},
		{"H07 another base", `{"$id":"file:///etc/","$ref":"passwd"}`},
		{"a dialect from elsewhere, which is not read", `{"$schema":"file:///etc/passwd","type":"object"}`},
		{"H08 allOf doubling", doubling("allOf")},
		{"H08 anyOf doubling", doubling("anyOf")},
		{"H08 oneOf doubling", doubling("oneOf")},
		{"H08 many alternatives", `{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[` + strings.Repeat(`{"type":"object","required":["q"]},`, 200) + `{"type":"string"}]}}}}`},
		{"H08 many values to choose from", `{"type":"object","properties":{"a":{"enum":[` + strings.Repeat(`"aaaaaaaaaa",`, 5000) + `"b"]}}}`},
		{"H08 deep", strings.Repeat(`{"type":"object","properties":{"a":`, 2000) + `{}` + strings.Repeat(`}}`, 2000)},
		{"H09 nested repeats", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}`},
		{"H09 many repeats", `{"type":"object","properties":{"a":{"type":"string","pattern":"(a{1000}){1000}"}}}`},
		{"H09 look-ahead", `{"type":"object","properties":{"a":{"type":"string","pattern":"(?=a)b"}}}`},
		{"H09 long pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":"` + strings.Repeat("a?", 20_000) + `"}}}`},
		{"H09 alternatives", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(a|aa|aaa|a*)*b$"}}}`},
		{"H05 huge bound", `{"type":"object","properties":{"a":{"type":"number","multipleOf":1e-9999999}}}`},
	} {
		var m *model.Model
		var err error
		within(t, s.name+": compile", func() { m, err = model.CompileSchema("M", json.RawMessage(s.schema)) })
		if err != nil {
			require.Less(t, len(err.Error()), 2048, s.name)
			require.NotContains(t, err.Error(), "root:", s.name)
			continue
		}
		require.NotContains(t, s.name, "H07", "is compiled")
		for i, input := range inputs {
			within(t, fmt.Sprintf("%s: input %d", s.name, i), func() {
				_, faults := m.Check(input)
				if len(faults) > 0 {
					require.Less(t, len(model.Feedback("M", faults)), 16<<10, s.name)
				}
			})
		}
	}
}

// doubling is a schema in which each definition names the next one twice.
func doubling(keyword string) string {
	const levels = 24
	defs := make([]string, 0, levels+1)
	for i := range levels {
		defs = append(defs, fmt.Sprintf(`"d%d":{%q:[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, keyword, i+1, i+1))
	}
	defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object"}`, levels))
	return `{"$defs":{` + strings.Join(defs, ",") + `},"$ref":"#/$defs/d0"}`
}

// TestH02H05H10DataIsCheckedWithinItsBudget: against models as MozaiksAI and our own manifests
// write them.
func TestH02H05H10DataIsCheckedWithinItsBudget(t *testing.T) { //nolint:paralleltest // measures the process
	field := func(name string, spec map[string]any) model.Field { return model.Field{Name: name, Spec: spec} }
	set, problems := model.CompileMozaiks([]model.Definition{
		{Name: "Item", Fields: []model.Field{field("a", map[string]any{"type": "str"}), field("b", map[string]any{"type": "int", "default": number("1")})}},
		{Name: "Other", Fields: []model.Field{field("a", map[string]any{"type": "int"}), field("c", map[string]any{"type": "list", "items": "Item"})}},
		{Name: "Tree", Fields: []model.Field{field("kids", map[string]any{"type": "list", "items": "Tree", "default": []any{}})}},
		{Name: "Left", Fields: []model.Field{
			field("twin", map[string]any{"type": "union", "variants": []any{"Left", "Right"}, "default": nil}),
			field("a", map[string]any{"type": "list", "items": "int", "default": []any{}}),
		}},
		{Name: "Right", Fields: []model.Field{
			field("twin", map[string]any{"type": "union", "variants": []any{"Right", "Left"}, "default": nil}),
			field("a", map[string]any{"type": "list", "items": "float", "default": []any{}}),
		}},
		{Name: "Out", Fields: []model.Field{
			field("items", map[string]any{"type": "list", "items": "Item", "default": []any{}}),
			field("either", map[string]any{"type": "union", "variants": []any{"Item", "Other", "Tree"}, "default": nil}),
			field("kind", map[string]any{"type": "literal", "values": []any{"one", "two"}, "default": "one"}),
			field("tree", map[string]any{"type": "Tree", "default": nil}),
			field("twin", map[string]any{"type": "union", "variants": []any{"Left", "Right", "Tree"}, "default": nil}),
			field("free", map[string]any{"type": "dict", "default": map[string]any{}}),
		}},
	})
	require.Empty(t, problems)
	out := set["Out"]
	require.NotNil(t, out)
	many := func(v any, n int) []any { return slices.Repeat([]any{v}, n) }
	manyKeys := make(map[string]any, 60_000)
	for i := range 60_000 {
		manyKeys[fmt.Sprintf("itemz%d", i)] = number("1")
	}
	twins := map[string]any{"a": "x"}
	for range 50 {
		twins = map[string]any{"twin": twins, "a": many("1", 1000)}
	}
	wideTree := map[string]any{"kids": many(map[string]any{"kids": many(map[string]any{}, 200)}, 200)}
	digits := number(strings.Repeat("9", 64))
	for name, data := range map[string]any{
		"items that fit":              map[string]any{"items": many(map[string]any{"a": "x"}, 30_000)},
		"items that do not":           map[string]any{"items": many(map[string]any{"a": []any{}}, 30_000)},
		"items of the wrong type":     map[string]any{"items": many("x", 99_000)},
		"alternatives":                map[string]any{"either": map[string]any{"a": "1", "c": many(map[string]any{"a": digits}, 30_000)}},
		"unknown keys like known":     manyKeys,
		"a long unknown key":          map[string]any{strings.Repeat("items", 200_000): "x"},
		"a long literal":              map[string]any{"kind": strings.Repeat("one", 300_000)},
		"large numbers":               map[string]any{"items": many(map[string]any{"a": "x", "b": digits}, 15_000)},
		"numbers with exponents":      map[string]any{"items": many(map[string]any{"a": "x", "b": number("1e308")}, 15_000)},
		"numbers in text":             map[string]any{"items": many(map[string]any{"a": "x", "b": strings.Repeat("9", 60)}, 15_000)},
		"a number of a mebibyte text": map[string]any{"items": []any{map[string]any{"a": "x", "b": strings.Repeat("9", mebi)}}},
		"two ways at every level":     map[string]any{"twin": twins},
		"many ways at few levels":     map[string]any{"twin": map[string]any{"twin": map[string]any{"twin": map[string]any{"a": many("1", 90_000)}}}},
		"a wide tree":                 map[string]any{"tree": wideTree},
		"free form":                   map[string]any{"free": map[string]any{"x": many(map[string]any{"y": many(digits, 10)}, 8000)}},
		"keys with control signs":     map[string]any{"free": map[string]any{"\x00\x1b[2J": many("x", 9)}, "items": map[string]any{"\n": 1}},
	} {
		within(t, name, func() {
			_, faults := out.Check(data)
			text := model.Feedback("Out", faults)
			list, err := json.Marshal(faults)
			if err != nil || len(text) > 16<<10 || len(list) > 64<<10 {
				t.Errorf("%s: faults of %d bytes, feedback of %d, %v", name, len(list), len(text), err)
			}
		})
	}
}

// TestUnknownNamesAreAnsweredWithinTheirBudget: the search for what was meant among many
// workflows.
func TestUnknownNamesAreAnsweredWithinTheirBudget(t *testing.T) { //nolint:paralleltest // measures the process
	root := t.TempDir()
	for i := range 500 {
		dir := filepath.Join(root, fmt.Sprintf("%s%03d", strings.Repeat("w", 40), i))
		require.NoError(t, os.MkdirAll(dir, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), []byte("tools: [{name: t, agent: A, kind: go}]\n"), 0o600))
	}
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root})
	require.NoError(t, err)
	require.Len(t, set.Workflows(), 500)
	known := set.Workflows()[250]
	for _, n := range [][3]string{
		{strings.Repeat("w", 43), "A", ""}, {strings.Repeat("w", 1024), "A", ""}, {known, strings.Repeat("A", 1024), ""}, {known, "A", strings.Repeat("m", 1024)},
	} {
		within(t, fmt.Sprintf("%.50q", n), func() {
			if _, err := set.Resolve(n[0], n[1], n[2]); err == nil || len(err.Error()) > 2048 {
				t.Errorf("%.50q: %v", n, err)
			}
		})
	}
}
