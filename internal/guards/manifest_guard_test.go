package guards_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/guards"
)

func TestSchemaGuardTakesValuesAsTheyAre(t *testing.T) {
	t.Parallel()
	d := guards.Declared{Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["n"],
		"properties":{"n":{"type":"integer","maximum":10},"note":{"type":"string","default":""},"of":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`)}
	for args, want := range map[string]string{
		`{"n":1}`:             "",
		`{"n":2.0,"note":""}`: "",
		`{"n":1,"of":null}`:   "",
		`{"n":11}`:            "the arguments must not go through: /n: expected",
		`{"n":"1"}`:           "/n: expected integer, got string",
		`{"n":1,"of":"1"}`:    "/of: expected",
		`{"n":1,"secret":2}`:  "/secret: expected only keys of the schema",
		`{}`:                  "/n: is missing",
		`{"a":1,"b":2}`:       "(and 2 more)",
	} {
		got := refusal(t, d, args)
		require.Contains(t, got, want, args)
		require.Equal(t, want == "", got == "", "%s: %s", args, got)
	}
	require.Contains(t, outputRefusal(t, guards.Declared{Schema: json.RawMessage(`{"type":"string"}`)}, `{}`, `4711`), "the result must not go through")
	require.NotContains(t, outputRefusal(t, guards.Declared{Schema: json.RawMessage(`{"type":"string"}`)}, `{}`, `4711`), "4711")
	require.Equal(t, "the result cannot be read by a guard", outputRefusal(t, guards.Declared{Schema: json.RawMessage(`{}`)}, `{}`, `{`))
	require.Empty(t, outputRefusal(t, guards.Declared{Schema: json.RawMessage(`{"type":"null"}`)}, `{}`, ``))
}

func TestConditionThatHoldsRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ when, args, want string }{
		{`args.amount > 1000`, `{"amount":1000}`, ""},
		{`args.amount > 1000`, `{"amount":1000.5}`, "a guard refuses the arguments: args.amount > 1000"},
		{`args.amount > 1000 && user_id != "boss"`, `{"amount":5000}`, "a guard refuses"},
		{`(args.amount ?? 0) > 1000`, `{}`, ""},
		{`agent == "Clerk" && workflow == "Shop" && tool == "refund" && chat_id == "c1" && app_id == "acme" && user_id == "u1"`, `{}`, "a guard refuses"},
		{`any(args.items, .price * .n > 100)`, `{"items":[{"price":9.5,"n":10},{"price":5,"n":30}]}`, "a guard refuses"},
		{`sum(args.items, .price) > 100`, `{"items":[{"price":9.5},{"price":5}]}`, ""},
		{`all(args.a, any(args.b, # > 1))`, `{"a":[1,2],"b":[1,2]}`, "a guard refuses"},
		{`count(args.a, # == "x") == 2`, `{"a":["x","y","x"]}`, "a guard refuses"},
		{`len(filter(args.a, # > 1)) > 0`, `{"a":[1]}`, ""},
		{`args.to in ["a@x", "b@x"]`, `{"to":"b@x"}`, "a guard refuses"},
		{`not (args.to endsWith "@example.com")`, `{"to":"b@example.org"}`, "a guard refuses"},
		{`args.to matches "^[a-z]+$"`, `{"to":"abc"}`, "a guard refuses"},
		{`args.id == 9007199254740993`, `{"id":9007199254740993}`, "a guard refuses"},
		{`args.missing == nil`, `{}`, "a guard refuses"},
		{`"delete" in keys(args)`, `{"delete":true}`, "a guard refuses"},
		// What it cannot decide, it refuses.
		{`args.amount > 1000`, `{}`, "a guard could not decide, so the call is refused: a value is missing or of another type"},
		{`args.amount > 1000`, `{"amount":"4711"}`, "a guard could not decide"},
		{`len(args.list) > 1`, `{"list":5}`, "a guard could not decide"},
	} {
		got := refusal(t, guards.Declared{When: c.when}, c.args)
		require.Contains(t, got, c.want, "%s with %s", c.when, c.args)
		require.Equal(t, c.want == "", got == "", "%s with %s: %s", c.when, c.args, got)
		require.NotContains(t, got, "4711", "no value of the call is named")
	}
	for output, want := range map[string]string{
		`{"n":1}`: "", `{"n":5}`: "a guard refuses the result: output.n > args.n", `"x"`: "a guard could not decide", `{`: "the result cannot be read by a guard",
	} {
		require.Contains(t, outputRefusal(t, guards.Declared{When: "output.n > args.n"}, `{"n":3}`, output), want)
	}
}

func TestGuardThatCannotDecideAddsThatToItsMessage(t *testing.T) {
	t.Parallel()
	d := guards.Declared{When: "args.dayz > 14", Message: "too long"}
	require.Equal(t, "too long: a guard could not decide, so the call is refused: a value is missing or of another type than args.dayz > 14 takes it for",
		refusal(t, d, `{"days":1}`))
	require.Equal(t, "too long", refusal(t, d, `{"dayz":15}`))
}

func TestConditionEndsWhateverTheValuesAre(t *testing.T) {
	t.Parallel()
	list := `{"l":[` + strings.Repeat(`1,`, 9_999) + `1]}`
	require.Contains(t, // too many passes, or on a slow machine too long
		refusal(t, guards.Declared{When: `all(args.l, all(args.l, # == 1))`}, list),
		"a guard could not decide, so the call is refused: its loops take too ")
	require.NotEmpty(t, refusal(t, guards.Declared{When: `all(args.l, # == 1)`}, list), "one loop over it is allowed")
	require.Contains(t, refusal(t, guards.Declared{When: `len(1..1000000) > 1`}, `{}`), "a guard could not decide")
}

func TestSizeGuardCountsJSON(t *testing.T) {
	t.Parallel()
	require.Empty(t, refusal(t, guards.Declared{MaxBytes: 9}, `{"a": "b"}`))
	require.Equal(t, "the arguments may take 8 bytes, here are 9", refusal(t, guards.Declared{MaxBytes: 8}, `{"a": "b"}`))
	require.Equal(t, "the result may take 2 bytes, here are 3", outputRefusal(t, guards.Declared{MaxBytes: 2}, `{}`, `"a"`))
	require.Equal(t, "too long", outputRefusal(t, guards.Declared{MaxBytes: 2, Message: "too long"}, `{}`, `"a"`))
}

func TestGuardThatCannotBeUsedIsRefusedWithWhatToWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d           guards.Declared
		field, text string
	}{
		"no side":      {guards.Declared{On: "in", Secrets: true}, "on", `"in" is not a side of a call`},
		"nothing":      {guards.Declared{On: "input"}, "on", "checks nothing"},
		"two":          {guards.Declared{On: "input", Secrets: true, When: "true"}, "secrets", "when and secrets"},
		"size":         {guards.Declared{On: "input", MaxBytes: -1}, "max_bytes", "-1"},
		"message":      {guards.Declared{On: "input", MaxBytes: 1, Message: strings.Repeat("x", 2000)}, "message", "2000 bytes"},
		"schema":       {guards.Declared{On: "input", Schema: json.RawMessage(`{"type":"strin"}`)}, "schema", "at /type"},
		"no schema":    {guards.Declared{On: "input", Schema: json.RawMessage(`[`)}, "schema", ""},
		"syntax":       {guards.Declared{On: "input", When: `args.amount >`}, "when", "unexpected token"},
		"not boolean":  {guards.Declared{On: "input", When: `args.amount`}, "when", "expected bool"},
		"number":       {guards.Declared{On: "input", When: `len(args)`}, "when", "expected bool"},
		"unknown name": {guards.Declared{On: "input", When: `arg.amount > 1`}, "when", "unknown name arg"},
		"no output":    {guards.Declared{On: "input", When: `output.n > 1`}, "when", "write on: output"},
		"clock":        {guards.Declared{On: "input", When: `now().Year() > 1`}, "when", "now"},
		"map":          {guards.Declared{On: "input", When: `len(map(args.l, args.b)) > 1`}, "when", "map"},
		"reduce":       {guards.Declared{On: "input", When: `reduce(args.l, #acc + #) == 1`}, "when", "reduce"},
		"let":          {guards.Declared{On: "input", When: `let x = args.a; x == 1`}, "when", "let"},
		"sequence":     {guards.Declared{On: "input", When: `args.a == 1; true`}, "when", "more than one"},
		"environment":  {guards.Declared{On: "input", When: `$env["args"] == nil`}, "when", "$env"},
		"the counter":  {guards.Declared{On: "input", When: `#step()`}, "when", ""},
		"pattern":      {guards.Declared{On: "input", When: `args.a matches args.b`}, "when", "pattern"},
		"long pattern": {guards.Declared{On: "input", When: `args.a matches "` + strings.Repeat("a", 600) + `"`}, "when", "pattern"},
		"bad pattern":  {guards.Declared{On: "input", When: `args.a matches "("`}, "when", "error parsing regexp"},
		"method":       {guards.Declared{On: "input", When: `args.Foo() == 1 && agent.Bar() == 2`}, "when", ""},
		"long":         {guards.Declared{On: "input", When: strings.Repeat("true && ", 300) + "true"}, "when", "2404 bytes"},
		"deep":         {guards.Declared{On: "input", When: strings.Repeat("!(", 300) + "true" + strings.Repeat(")", 300)}, "when", ""},
	} {
		_, err := guards.Compile(c.d)
		p, ok := diag.Of(err)
		require.True(t, ok, name)
		require.Equal(t, c.field, p.Field, name)
		require.Contains(t, p.Message+" "+p.Fix, c.text, name)
		require.NotEmpty(t, p.Fix, name)
		require.NotContains(t, p.Message, "\n", name)
	}
}
