package bindings_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

// The two ways to write an e with an acute accent: one character, and two.
const (
	composed   = "\u00e9"
	decomposed = "e\u0301"
)

// cafe has its names in one form, É of a text stands for it.
const cafe = `
-- CafÉ/oneturn.yaml --
agents:
  ServÉ: {model: CommandÉ, tools: [prÉparer]}
models:
  CommandÉ: {type: object, required: [thÉ, AccÉs], properties: {thÉ: {type: integer}, AccÉs: {type: string}}}
tools:
  - {name: prÉparer, agent: ServÉ, file: prÉparer.py, function: preparer}
-- CafÉ/tools/prÉparer.py --
def preparer(th{e}, acc{e}s): return th{e}
-- MozaÉk/agents.yaml --
agents:
  HôteÉ: {auto_tool_mode: true}
-- MozaÉk/structured_outputs.yaml --
models:
  ReçuÉ: {type: model, fields: {prixÉ: {type: int}}}
registry: {HôteÉ: ReçuÉ}
-- MozaÉk/tools.yaml --
tools:
  - {agent: HôteÉ, file: t.py, function: f, auto_invoke: true, tool_type: Agent_Tool}
-- MozaÉk/tools/t.py --
def f(prix{e}): return prix{e}
`

func TestNamesAreOneInWhateverFormOfUnicodeTheyAreWritten(t *testing.T) {
	t.Parallel()
	for written, asked := range map[string]string{composed: decomposed, decomposed: composed} {
		as := func(text string) string { return strings.ReplaceAll(text, "É", asked) }
		root := unpack(t, strings.NewReplacer("É", written, "{e}", composed).Replace(cafe)) // Python composes names itself
		set := load(t, root)
		require.Empty(t, lines(set, diag.SeverityError))
		require.Equal(t, []string{"Caf" + composed, "Moza" + composed + "k"}, set.Workflows())

		b, err := set.Resolve(as("cafÉ"), as("ServÉ"), as("CommandÉ"))
		require.NoError(t, err)
		require.Equal(t, "pr"+composed+"parer", b.Tool)
		require.Equal(t, map[string]any{"th" + composed: json.Number("3"), "acc" + composed + "s": "x"},
			arguments(t, b, goldenTurn("A"), as(`{"thÉ":"3","AccÉs":"x"}`)))
		require.FileExists(t, filepath.Join(root, b.File))
		found, err := set.Tool(as("CafÉ"), as("prÉparer"))
		require.NoError(t, err)
		require.Equal(t, b.Tool, found.Tool)
		require.Equal(t, b, set.Bound(as("CAFÉ"), as("ServÉ"), as("prÉparer")))

		b, err = set.Resolve(as("MozaÉk"), as("HôteÉ"), as("ReçuÉ"))
		require.NoError(t, err)
		require.Equal(t, map[string]any{"prix" + composed: json.Number("5")}, arguments(t, b, goldenTurn("A"), as(`{"prixÉ":"5","other":1}`)))
	}
}

func TestTwoFoldersOfOneNameAreReported(t *testing.T) {
	t.Parallel()
	const manifest = "/oneturn.yaml --\nagents: {}\n"
	set := load(t, unpack(t, "-- Caf"+composed+manifest+"-- Caf"+decomposed+manifest))
	require.Contains(t, strings.Join(lines(set, diag.SeverityError), "\n"), "name_clash")
}

func TestNameThatFitsSeveralWorkflowsIsAmbiguous(t *testing.T) {
	t.Parallel()
	var declared []bindings.Declaration
	for _, name := range []string{"Größe", "GRÖßE", "Shop"} {
		declared = append(declared, bindings.Declaration{Workflow: name, Agent: "A", Tool: name})
	}
	set, err := bindings.Load(t.Context(), bindings.Options{Declared: declared})
	require.NoError(t, err)
	for asked, tool := range map[string]string{"Größe": "Größe", "GRÖßE": "GRÖßE", "SHOP": "Shop"} {
		b, err := set.Resolve(asked, "A", "")
		require.NoError(t, err)
		require.Equal(t, tool, b.Tool)
	}
	_, err = set.Resolve("größe", "A", "")
	require.ErrorIs(t, err, bindings.ErrUnknownWorkflow)
	require.ErrorContains(t, err, `workflow "größe" is ambiguous: write the name of one exactly: GRÖßE, Größe`)
	require.Nil(t, set.Bound("größe", "A", "Größe"))
}

func TestAgentModelAndToolOfTheVeryNameWinOverOthers(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/oneturn.yaml --
agents: {Seller: {model: Offer}, seller: {model: offer}}
models: {Offer: {type: object, properties: {a: {}}}, offer: {type: object, properties: {b: {}}}}
tools:
  - {name: Sell, agent: Seller, kind: go}
  - {name: sell, agent: seller, kind: go}
`))
	for agent, want := range map[string]string{"Seller": "Sell", "seller": "sell"} {
		b, err := set.Resolve("w", agent, "")
		require.NoError(t, err)
		require.Equal(t, want, b.Tool)
	}
	_, err := set.Resolve("w", "SELLER", "")
	require.ErrorIs(t, err, bindings.ErrNoBinding)
}

func TestKeysThatMatchSeveralFieldsAreViolations(t *testing.T) {
	t.Parallel()
	b := refunds(t)["go"]
	for output, want := range map[string]string{
		`{"Amount":5,"a_mount":6}`:            `one key "amount" instead of "Amount" and "a_mount"`,
		`{"Amount":5,"a_mount":5,"AMOUNT":5}`: `one key "amount" instead of "AMOUNT" and "Amount"`,
	} {
		tree, err := events.Decode([]byte(output))
		require.NoError(t, err)
		_, violations := b.Model.Check(tree)
		require.NotEmpty(t, violations)
		require.Equal(t, "/amount", violations[0].Path)
		require.Equal(t, want, violations[0].Expected)
	}
	set := load(t, unpack(t, `-- W/oneturn.yaml --
tools: [{name: t, agent: A, kind: go, schema: {type: object, properties: {userName: {}, user_name: {}}}}]
`))
	tree, err := events.Decode([]byte(`{"UserName":"ada"}`))
	require.NoError(t, err)
	_, violations := set.Bindings()[0].Model.Check(tree)
	require.Len(t, violations, 1)
	require.Equal(t, `the key "userName" or "user_name" instead of "UserName"`, violations[0].Expected)
}

func TestFieldsAndParametersMatchExactlyFirstAndNeverAmbiguously(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fields, params, data, args, finding string }{
		{"user_id2, UserID2", "user_id2=0", `{"user_id2":1,"UserID2":2}`, `{"user_id2":1}`, ""},
		{"UserID2, user_id2", "user_id2=0", `{"user_id2":1,"UserID2":2}`, `{"user_id2":1}`, ""},
		{"UserID2", "userId2=0, user_id2=0", `{"UserID2":2}`, `{}`, "field UserID2 fits the parameters userId2 and user_id2, and none has the very name"},
		{"UserID2, userId2", "user_id2=0", `{"UserID2":2,"userId2":1}`, `{}`, "parameter user_id2 fits the fields UserID2 and userId2, and none has the very name"},
		{"user_id2", "userId2=0, user_id2=0", `{"user_id2":2}`, `{"user_id2":2}`, ""},
	} {
		properties := strings.ReplaceAll(tt.fields, ",", ": {},") + ": {}"
		set := load(t, unpack(t, `-- W/oneturn.yaml --
tools: [{name: t, agent: A, file: t.py, function: f, schema: {type: object, properties: {`+properties+`}}}]
-- W/t.py --
def f(`+tt.params+`): pass
`))
		found := strings.Join(lines(set, diag.SeverityError), "\n")
		if tt.finding == "" {
			require.Empty(t, found)
		} else {
			require.Contains(t, found, tt.finding)
			require.Contains(t, found, "ambiguous_parameter")
		}
		tree, err := events.Decode([]byte(tt.args))
		require.NoError(t, err)
		require.Equal(t, tree, any(arguments(t, set.Bindings()[0], goldenTurn("A"), tt.data)), "%s to %s", tt.fields, tt.params)
	}
}

func TestHintsThatAreNotBuiltAreMentioned(t *testing.T) {
	t.Parallel()
	root := unpack(t, `-- W/oneturn.yaml --
tools: [{name: t, agent: A, file: t.py, function: f, schema: {type: object, properties: {x: {}}}}]
-- W/t.py --
def f(x): pass
`)
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Inspect: func(ctx context.Context, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
		found, err := inspect(ctx, root, files)
		f := found["W/t.py"].Functions["f"]
		f.Raw = map[string]string{"x": "Own"}
		found["W/t.py"].Functions["f"] = f
		return found, err
	}})
	require.NoError(t, err)
	require.Contains(t, strings.Join(lines(set, diag.SeverityInfo), "\n"), "parameter x of tool t has the hint Own, which is not built")
}
