package flow_test

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// hostile is a program that tries to cost more than its size is worth.
type hostile struct {
	plan        string // JSON of a plan, or
	orchestrate string // of an orchestration request
	tree        any    // or a plan as a tree that no document can have, of size bytes
	size        int
	tools       flow.ToolList
}

func (h *hostile) input(t *testing.T) (data any, size int) {
	t.Helper()
	switch {
	case h.tree != nil:
		return h.tree, h.size
	case h.plan != "":
		return decoded(t, h.plan), len(h.plan)
	default:
		return decoded(t, h.orchestrate), len(h.orchestrate)
	}
}

func (h *hostile) compile(data any) (*flow.Program, error) {
	o := flow.Options{Tools: h.tools}
	if h.orchestrate == "" {
		return flow.CompilePlan(data, o)
	}
	r, err := flow.ReadRequest(data, o)
	if err != nil {
		return nil, err
	}
	return flow.CompileOrchestration(r.Plan, r, o)
}

// call is a plan whose second call has these arguments.
func call(arguments string) string {
	return `{"type":"tool_calls","calls":[{"tool_name":"a"},{"tool_name":"a","arguments":` + arguments + `}]}`
}

// with is an orchestration whose second step has these arguments.
func with(arguments string) string {
	return `{"plan":{"steps":[{"agent":{"agent_id":"a","result_key":"k"}},{"agent":{"agent_id":"a","with":` + arguments + `}}]}}`
}

// many repeats a text with commas between; % becomes a number, & the next one.
func many(format string, n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.NewReplacer("%", strconv.Itoa(i), "&", strconv.Itoa(i+1)).Replace(format)
	}
	return strings.Join(items, ",")
}

func nested(n int) any {
	var v any = "$0.output.x"
	for i := range n {
		if i%2 == 0 {
			v = []any{v}
		} else {
			v = map[string]any{"k": v}
		}
	}
	return map[string]any{"type": "tool_calls", "calls": []any{
		map[string]any{"tool_name": "a"}, map[string]any{"tool_name": "a", "arguments": map[string]any{"v": v}},
	}}
}

func toolWith(tb testing.TB, output string) flow.ToolList {
	tb.Helper()
	schema, err := flow.NewSchema(json.RawMessage(output))
	require.NoError(tb, err)
	return flow.ToolList{{Name: "a", Output: schema, Arguments: schema}}
}

func hostilePrograms(t *testing.T) map[string]*hostile {
	t.Helper()
	const mega = 1 << 20
	text := func(part string, size int) string { return `"` + strings.Repeat(part, size/len(part)) + `"` }
	key := text("k", mega)
	fields := toolWith(t, `{"properties":{`+many(`"field_%_of_a_schema_with_long_names_and_many_of_them":{}`, 2000)+`}}`)
	alternatives := toolWith(t, `{"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[`+many(`{"properties":{"x":{"$ref":"#/$defs/n"},"f%":{}}}`, 60)+`]}}}`)
	every := toolWith(t, `{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[`+many(`{"properties":{"x":{"$ref":"#/$defs/n"},"f%":{}}}`, 60)+`]}}}`)
	patterns := toolWith(t, `{"patternProperties":{`+many(`"^(a|aa)+%$":{}`, 200)+`}}`)
	heavy := toolWith(t, `{"patternProperties":{`+many(`"^(`+strings.Repeat(`a{0,1000}`, 50)+`)%$":{}`, 500)+`}}`)
	slow := toolWith(t, `{"patternProperties":{`+many(`"^(`+strings.Repeat(`a?`, 200)+`a{0,1000})%$":{}`, 20)+`}}`)
	unions := flow.ToolList{{Name: "a", Input: compiled(t, `{"type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[`+
		many(`{"type":"object","properties":{"c":{"$ref":"#/$defs/n"},"k":{"const":%}},"required":["k"]}`, 8)+`]}}}`)}}
	tree := strings.Repeat(`{"k":99,"c":`, 20) + `{"k":1}` + strings.Repeat(`}`, 20)
	p := map[string]*hostile{
		"literals that fit no alternative":           {plan: `{"type":"tool_calls","calls":[` + many(`{"tool_name":"a","arguments":{"n":%,"v":`+tree+`}}`, 50) + `]}`, tools: unions},
		"one long text":                              {plan: call(`{"v":` + text("x", 5*mega) + `}`)},
		"one long reference":                         {plan: call(`{"v":"$0.output.` + strings.Repeat("x", 5*mega) + `"}`)},
		"one long reference to itself":               {plan: call(`{"v":"$1.output.` + strings.Repeat("x", 5*mega) + `"}`)},
		"a reference of dots":                        {plan: call(`{"v":"$0.output.` + strings.Repeat(".", 5*mega) + `"}`)},
		"a call with five million digits":            {plan: call(`{"v":"$` + strings.Repeat("9", 5*mega) + `.output"}`)},
		"many values":                                {plan: call(`{"l":[` + many(`"text %"`, 90_000) + `]}`)},
		"many keys":                                  {plan: call(`{` + many(`"key %":"$"`, 90_000) + `}`)},
		"many keys, one reference each":              {plan: call(`{` + many(`"key %":"$0.output.x"`, 90_000) + `}`)},
		"values under a long key":                    {plan: call(`{` + key + `:[` + many(`%`, 90_000) + `]}`)},
		"wrong references under a long key":          {plan: call(`{` + key + `:[` + many(`"$%.output.x"`, 1900) + `]}`)},
		"an unknown tool with a long name":           {plan: `{"type":"tool_calls","calls":[{"tool_name":` + key + `}]}`},
		"calls without number":                       {plan: `{"type":"tool_calls","calls":[` + many(`{"tool_name":"a%"}`, 20_000) + `]}`},
		"calls that are not objects":                 {plan: `{"type":"tool_calls","calls":[` + many(`%`, 50) + `]}`},
		"undeclared fields":                          {plan: call(`{"l":[` + many(`"$0.output.feild_%"`, 1900) + `]}`), tools: fields},
		"references into alternatives":               {plan: call(`{"l":[` + many(`"$0.output.x.x.x.x.x.x.x.x.f%"`, 1900) + `]}`), tools: alternatives},
		"references into parts":                      {plan: call(`{"l":[` + many(`"$0.output.x.x.x.x.x.x.x.x.f%"`, 1900) + `]}`), tools: every},
		"patterns that compile to millions of steps": {plan: call(`{"l":[` + many(`"$0.output.`+strings.Repeat("a", 120)+`%"`, 1900) + `]}`), tools: heavy},
		"patterns that match slowly":                 {plan: call(`{"l":[` + many(`"$0.output.`+strings.Repeat("a", 120)+`%"`, 1900) + `]}`), tools: slow},
		"long names against patterns":                {plan: call(`{"l":[` + many(`"$0.output.`+strings.Repeat("a", 2000)+`%"`, 1900) + `]}`), tools: patterns},
		"a tree of depth 10,000":                     {tree: nested(10_000), size: 500_000},
		"a deep tree":                                {plan: call(strings.Repeat(`{"k":`, 50) + `[` + many(`"$0.output.x%"`, 1900) + `]` + strings.Repeat(`}`, 50))},
		"escaped braces":                             {orchestrate: with(`{"v":` + text(`\\{{`, 5*mega) + `}`)},
		"braces":                                     {orchestrate: with(`{"v":` + text(`{{`, 5*mega) + `}`)},
		"references in one text":                     {orchestrate: with(`{"v":` + text(`{{k}}`, 5*mega) + `}`)},
		"wrong references in one text":               {orchestrate: with(`{"v":` + text(`{{x}}`, 9000) + `}`)},
		"a long path":                                {orchestrate: with(`{"v":"{{ ` + strings.Repeat("x", 5*mega) + ` }}"}`)},
		"long paths":                                 {orchestrate: with(`{"l":[` + many(`"{{ bindings.`+strings.Repeat("ä.", 30)+strings.Repeat("é", 450)+`% }}"`, 1900) + `]}`)},
		"paths with many names":                      {orchestrate: with(`{"l":[` + many(`"{{ `+strings.Repeat("abcdefghijklmnopqrstuvwxyz.", 31)+`% }}"`, 1900) + `]}`)},
		"texts under a long key":                     {orchestrate: with(`{` + key + `:[` + many(`"text {{ k.x% }}"`, 1900) + `]}`)},
		"wrong texts under a long key":               {orchestrate: with(`{` + key + `:[` + many(`"text {{ x% }}"`, 1900) + `]}`)},
		"many bindings":                              {orchestrate: `{"bindings":{` + many(`"b%":0`, 90_000) + `},"plan":{"steps":[` + many(`{"parallel":{"bindings":{"x":1},"steps":[{"agent_id":"a","with":{"v":"{{ y% }}"}}]}}`, 12) + `]}}`},
		"many arguments of an agent":                 {orchestrate: with(`{` + many(`"key %":"{{"`, 90_000) + `}`)},
		"unknown keys":                               {orchestrate: `{` + many(`"key %":0`, 90_000) + `}`},
		"children without number":                    {orchestrate: `{"plan":{"steps":[{"parallel":{"steps":[` + many(`{"agent_id":"a%"}`, 30_000) + `]}}]}}`},
		"long ids":                                   {orchestrate: `{"plan":{"steps":[{"id":` + key + `,"agent":{"agent_id":` + key + `,"result_key":` + key + `}}]}}`},
		"programs in programs in programs":           {plan: strings.Repeat(`{"type":"tool_calls","calls":[{"tool_name":"run_plan","arguments":{"plan":`, 12) + `{}` + strings.Repeat(`}}]}`, 12)},
		"a long plan of a nested program":            {plan: call(`{"v":{"plan":` + text("p", 5*mega) + `}}`)},
		"numbers with many digits":                   {tree: digits("1" + strings.Repeat("0", 5*mega)), size: 5 * mega},
		"fractions with many digits":                 {tree: digits("1." + strings.Repeat("3", 5*mega)), size: 5 * mega},
		"fields of an orchestration's agent":         {orchestrate: with(`{"l":[` + many(`"{{ k.feild_% }}"`, 1900) + `]}`), tools: fields},
	}
	for _, h := range p {
		if h.tools == nil {
			h.tools = append(toolWith(t, `{"properties":{"x":{"type":"string"}}}`), flow.Tool{Name: "run_plan", Program: flow.KindPlan})
		}
	}
	return p
}

func compiled(tb testing.TB, schema string) *model.Model {
	tb.Helper()
	m, err := model.CompileSchema("a", json.RawMessage(schema))
	require.NoError(tb, err)
	return m
}

func digits(number string) any {
	return map[string]any{"type": "tool_calls", "calls": []any{
		map[string]any{"tool_name": "a", "arguments": map[string]any{"n": json.Number(number)}},
	}}
}

// TestAHostileProgramCostsLittle compiles programs that try to cost time or memory. Everything that
// is reported of them is small, and the same each time.
func TestAHostileProgramCostsLittle(t *testing.T) { //nolint:paralleltest // measures the process
	for name, h := range hostilePrograms(t) { //nolint:paralleltest // measures the process
		t.Run(name, func(t *testing.T) {
			data, size := h.input(t)
			feedback := map[string]bool{}
			spent, allocated := cost(t, func() {
				_, err := h.compile(data)
				text := ""
				if refused, ok := asRefused(err); ok {
					text = refused.Feedback()
					require.LessOrEqual(t, len(refused.Problems), flow.MaxProblems)
				}
				feedback[text] = true
			})
			t.Logf("%v, %d KiB for %d KiB", spent, allocated>>10, size>>10)
			require.Less(t, spent, budget(time.Second)) // what grows with the square of the input takes many
			require.Less(t, allocated, uint64(max(10*size, 8<<20)))
			require.Len(t, feedback, 1, "the same text each time")
			for text := range feedback {
				require.Less(t, len(text), 64<<10)
			}
		})
	}
}

func asRefused(err error) (*flow.Refused, bool) {
	refused, ok := err.(*flow.Refused) //nolint:errorlint // the compiler returns it as it is
	return refused, ok
}

// cost runs f several times and returns the least time that it computed and the least memory that it
// allocated: the collector only adds to them. A busy machine does not count.
func cost(t *testing.T, f func()) (spent time.Duration, allocated uint64) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after runtime.MemStats
	var times []time.Duration
	var bytes []uint64
	for range 4 {
		runtime.ReadMemStats(&before)
		start := threadCPU(t)
		f()
		times = append(times, threadCPU(t)-start)
		runtime.ReadMemStats(&after)
		bytes = append(bytes, after.TotalAlloc-before.TotalAlloc)
	}
	return slices.Min(times), slices.Min(bytes)
}

// budget is a time for a build without race detector, which makes everything slower.
func budget(d time.Duration) time.Duration {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				return 20 * d
			}
		}
	}
	return d
}

// resolvedLast resolves the last call of a program with one output for all calls.
func resolvedLast(program *flow.Program, tools flow.Tools, output any) (map[string]any, error) {
	calls := program.Calls()
	return program.Resolve(calls[len(calls)-1], tools, func(string) (any, bool) { return output, true })
}

// TestReferencesDoNotMultiplyALargeOutput resolves calls that refer to one output again and again.
func TestReferencesDoNotMultiplyALargeOutput(t *testing.T) { //nolint:paralleltest // measures the process
	tools := flow.ToolList{openTool(t, "a")}
	mega := strings.Repeat("x", 1<<20)
	values := make([]any, 50_000)
	for name, c := range map[string]struct { //nolint:paralleltest // measures the process
		h      hostile
		output any
	}{
		"a large text as a whole":  {hostile{plan: call(`{"l":[` + many(`"$0.output.v","%"`, 1900) + `]}`)}, mega},
		"a large text within text": {hostile{orchestrate: with(`{"v":"` + strings.Repeat("-{{ k.v }}", 1900) + `"}`)}, mega},
		"many values as a whole":   {hostile{plan: call(`{"l":[` + many(`"$0.output.v","%"`, 1900) + `]}`)}, values},
		"many values within text":  {hostile{orchestrate: with(`{"v":"` + strings.Repeat("-{{ k.v }}", 1900) + `"}`)}, values},
	} {
		t.Run(name, func(t *testing.T) {
			c.h.tools = tools
			data, _ := c.h.input(t)
			program, err := c.h.compile(data)
			require.NoError(t, err)
			var resolveErr error
			spent, allocated := cost(t, func() { _, resolveErr = resolvedLast(program, tools, map[string]any{"v": c.output}) })
			t.Logf("%v, %d KiB", spent, allocated>>10)
			require.ErrorIs(t, resolveErr, events.ErrTooLarge)
			require.ErrorContains(t, resolveErr, "refer to less")
			require.Less(t, spent, budget(50*time.Millisecond))
			require.Less(t, allocated, uint64(10<<20))
		})
	}
}

// TestNamesOfOtherLanguagesAreNames uses names that mean something to interpreters, and names that
// look like paths, indexes or references.
func TestNamesOfOtherLanguagesAreNames(t *testing.T) {
	t.Parallel()
	tools := toolWith(t, `{"properties":{"__proto__":{"type":"string"},"constructor":{"properties":{"prototype":{"type":"string"}}},"":{"type":"string"}}}`)
	program, err := (&hostile{plan: call(`{"__proto__":"$0.output.__proto__","constructor":"$0.output.constructor.prototype","a.b":"$0.output.","$0.output.x":{"{{k}}":"$0.output"}}`), tools: tools}).compileText(t)
	require.Error(t, err, "a reference does not end with a dot")
	require.Nil(t, program)

	h := &hostile{plan: call(`{"__proto__":"$0.output.__proto__","constructor":"$0.output.constructor.prototype","$0.output.x":{"{{k}}":"$0.output"}}`), tools: tools}
	program, err = h.compileText(t)
	require.NoError(t, err)
	arguments, err := resolvedLast(program, tools, map[string]any{"__proto__": "p", "constructor": map[string]any{"prototype": "{{ k }} $0.output.x"}})
	require.NoError(t, err)
	require.JSONEq(t, `{"__proto__":"p","constructor":"{{ k }} $0.output.x",
		"$0.output.x":{"{{k}}":{"__proto__":"p","constructor":{"prototype":"{{ k }} $0.output.x"}}}}`, string(events.JSONOf(arguments)))

	h = &hostile{plan: call(`{"v":"$0.output.toString","a.b":["$0.output.hasOwnProperty"]}`), tools: tools}
	_, err = h.compileText(t)
	refused, ok := asRefused(err)
	require.True(t, ok)
	require.Len(t, refused.Problems, 2)
	require.Equal(t, "a.b.0", refused.Problems[0].Argument)
	require.Equal(t, "/calls/1/arguments/a.b/0", refused.Problems[0].Path)
	require.Equal(t, []string{"", "__proto__", "constructor"}, refused.Problems[1].Error.AvailableFields)

	h = &hostile{orchestrate: `{"bindings":{"__proto__":{"polluted":1},"a.b":2,"text":"{{ k }} $0.output"},"plan":{"steps":[
		{"agent":{"agent_id":"a","result_key":"constructor"}},
		{"agent":{"agent_id":"a","with":{"p":"{{ __proto__.polluted }}","c":"{{ constructor.__proto__ }}","d":"{{ bindings.a.b }}","t":"{{ text }}","u":"<{{ text }}>"}}}]}}`, tools: tools}
	program, err = h.compileText(t)
	require.NoError(t, err)
	arguments, err = resolvedLast(program, tools, map[string]any{"__proto__": "out"})
	require.NoError(t, err)
	require.JSONEq(t, `{"p":1,"c":"out","d":2,"t":"{{ k }} $0.output","u":"<{{ k }} $0.output>"}`, string(events.JSONOf(arguments)),
		"templates in data are data")
}

func (h *hostile) compileText(t *testing.T) (*flow.Program, error) {
	t.Helper()
	data, _ := h.input(t)
	return h.compile(data)
}

// TestWhatIsTooLargeToSearchIsPossible compiles a valid plan whose tool has a schema beyond the
// budget of the compiler: the plan is not refused for a field that may be there.
func TestWhatIsTooLargeToSearchIsPossible(t *testing.T) {
	t.Parallel()
	bomb := `{"$ref":"#/$defs/d0","$defs":{"d40":{"properties":{"x":{}}},` +
		many(`"d%":{"anyOf":[{"$ref":"#/$defs/d&"},{"$ref":"#/$defs/d&"}]}`, 40)
	for name, schema := range map[string]string{
		"alternatives of alternatives":  bomb + `}}`,
		"more patterns than are tried":  `{"patternProperties":{` + many(`"^a%$":{}`, 5000) + `}}`,
		"a pattern and a very long key": `{"patternProperties":{"^x+$":{}}}`,
		"a pattern beyond the bounds":   `{"patternProperties":{"^y{0,1000}y{0,1000}y{0,1000}$":{}}}`,
	} {
		field := "x"
		if strings.Contains(name, "long") {
			field = strings.Repeat("x", 1<<20)
		}
		h := &hostile{plan: call(`{"v":"$0.output.` + field + `"}`), tools: toolWith(t, schema)}
		_, err := h.compileText(t)
		require.NoError(t, err, name)
	}
}

func TestWholeNumbersOfRequestsMayBeWrittenInAnyForm(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"1000": "", "1e3": "", "1000.00": "", "0.1e4": "", "5": "", "2147483647": "",
		"2147483648": "maximum", "1e300": "maximum", "12345678901234567890": "maximum",
		"0": "minimum", "-5": "minimum", "-1e3": "minimum", "-0.0": "minimum",
		"1.5": "type", "1e-3": "type", "15e-1": "type", "1.00000000000000000000000001": "type", `"5"`: "type",
	} {
		_, err := flow.ReadRequest(decoded(t, `{"prompt":"p","timeout_ms":`+number+`}`), flow.Options{Tools: flow.ToolList{}})
		refused, ok := asRefused(err)
		require.Equal(t, want != "", ok, number)
		if ok {
			require.Equal(t, want, refused.Problems[0].Rule, number)
		}
	}
	digits := json.Number("1" + strings.Repeat("0", 400))
	_, err := flow.ReadRequest(map[string]any{"prompt": "p", "max_parallel": digits}, flow.Options{Tools: flow.ToolList{}})
	require.ErrorContains(t, err, "at most")
}
