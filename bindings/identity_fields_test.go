package bindings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

// refundManifest has a tool for each way in which arguments reach a tool. The model allows keys
// that it does not list.
const refundManifest = `
models:
  Refund:
    type: object
    properties:
      order: {type: string, pattern: "^A-[0-9]+$"}
      amount: {type: number, maximum: 1000}
      lines: {type: array, items: {type: object, properties: {price: {type: number, maximum: 9}}}}
servers: {shop: {url: "https://shop.example.com/mcp"}}
tools:
- {name: mapped, agent: mapped, model: Refund, file: refund.py, function: refund}
- {name: unseen, agent: unseen, model: Refund, file: dynamic.py, function: refund}
- {name: go, agent: go, kind: go, model: Refund}
- {name: nats, agent: nats, model: Refund, nats: {service: shop, endpoint: refund}}
- {name: mcp, agent: mcp, model: Refund, mcp: {server: shop, tool: refund}}
- {name: http, agent: http, model: Refund, http: {url: "https://shop.example.com/refund"}}
- {name: poet, agent: poet, kind: agent, model: Refund, nats: {subject: agents.poet}}
`

// refunds loads the tools of refundManifest by name.
func refunds(t *testing.T) map[string]*bindings.Binding {
	t.Helper()
	set := load(t, unpack(t, "-- W/oneturn.yaml --"+refundManifest+`-- W/refund.py --
def refund(order=None, app_id=None, chat_id=None, user_id=None, amount=0, lines=()): pass
-- W/dynamic.py --
from other import *
`))
	require.Empty(t, lines(set, diag.SeverityError))
	require.NotContains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "identity_from_model")
	all := map[string]*bindings.Binding{}
	for _, b := range set.Bindings() {
		all[b.Tool] = b
	}
	require.Len(t, all, 7)
	return all
}

// arguments checks what a model wrote and maps it, as a turn does.
func arguments(t *testing.T, b *bindings.Binding, turn *events.StructuredOutputReady, output string) map[string]any {
	t.Helper()
	tree, err := events.Decode([]byte(output))
	require.NoError(t, err)
	checked, violations := b.Model.Check(tree)
	require.Empty(t, violations)
	args, _ := b.Args(checked, turn)
	return args
}

func TestModelOutputNeverDecidesWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	for name, b := range refunds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, key := range []string{"app_id", "AppID", "appId", "a_p_p-id", "App Id", "APP_ID", "enterprise_id", "EnterpriseId"} {
				args := arguments(t, b, goldenTurn("A"), `{"order":"A-1","`+key+`":"beta"}`)
				require.NotContains(t, values(args), "beta", key)
			}
			for _, key := range []string{
				"chat_id", "ChatID", "run_id", "user_id", "uſer_id", "UserId", "workflow_name", "turn_idempotency_key", "agent", "agentName",
			} {
				for _, forged := range []string{`"victim"`, `["victim"]`, `{"id":"victim"}`} {
					args := arguments(t, b, goldenTurn("A"), `{"order":"A-1","`+key+`":`+forged+`}`)
					text, err := json.Marshal(args)
					require.NoError(t, err)
					require.NotContains(t, string(text), "victim", key)
				}
			}
		})
	}
}

func TestUndeclaredKeysHaveTheTurnsOwnValueOrNone(t *testing.T) {
	t.Parallel()
	tools := refunds(t)
	for _, name := range []string{"unseen", "go", "nats", "mcp", "http", "poet"} {
		turn := goldenTurn("A")
		require.Equal(t, map[string]any{"order": "A-1", "AppID": "app", "chat": "kept"},
			arguments(t, tools[name], turn, `{"order":"A-1","AppID":"beta","user_id":"eve","chat":"kept"}`), name)
		turn.UserID = "ada"
		require.Equal(t, map[string]any{"order": "A-1", "user_id": "ada"},
			arguments(t, tools[name], turn, `{"order":"A-1","user_id":"eve"}`), name)
	}
	turn := goldenTurn("A")
	require.Equal(t, map[string]any{"order": "A-1", "app_id": "app", "chat_id": "c1"},
		arguments(t, tools["mapped"], turn, `{"order":"A-1","user_id":"eve"}`), "a user that the turn does not know is not the one that the model names")
}

func TestAnotherSpellingIsCheckedAsTheDeclaredField(t *testing.T) {
	t.Parallel()
	for name, b := range refunds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, key := range []string{"amount", "Amount", "AMOUNT", "a_m_ount", "amount ", "a-mount"} {
				for _, forged := range []string{`5000`, `"anything"`, `{}`} {
					tree, err := events.Decode([]byte(`{"order":"A-1","` + key + `":` + forged + `}`))
					require.NoError(t, err)
					_, violations := b.Model.Check(tree)
					require.Len(t, violations, 1, "%s: %s", key, forged)
					require.Equal(t, "/amount", violations[0].Path)
				}
				args := arguments(t, b, goldenTurn("A"), `{"order":"A-1","`+key+`":"50"}`)
				require.Equal(t, json.Number("50"), args["amount"], "%s is coerced as amount is", key)
			}
			args := arguments(t, b, goldenTurn("A"), `{"order":"A-1","amount":1,"Amount":5000,"AMOUNT":7000}`)
			require.Equal(t, json.Number("1"), args["amount"])
			require.NotContains(t, args, "Amount")
			require.NotContains(t, args, "AMOUNT")

			tree, err := events.Decode([]byte(`{"lines":[{"Price":10}]}`))
			require.NoError(t, err)
			_, violations := b.Model.Check(tree)
			require.Len(t, violations, 1, "inner objects too")
			require.Equal(t, "/lines/0/price", violations[0].Path)
		})
	}
}

// Fields of schemas that the model's own checker leaves to a library are not respelt, and fill nothing.
func TestAnotherSpellingFillsNothingWhereItIsNotChecked(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `-- W/oneturn.yaml --
tools:
- name: pay
  agent: A
  file: t.py
  schema: {type: object, properties: {order: {}}, dependentSchemas: {order: {properties: {amount: {maximum: 10}}}}}
-- W/t.py --
def pay(order, amount=0): pass
`))
	require.Empty(t, lines(set, diag.SeverityError))
	b := set.Bindings()[0]
	require.Equal(t, map[string]any{"order": "x"}, arguments(t, b, goldenTurn("A"), `{"order":"x","Amount":50}`))
}

func TestModelWithoutFieldsFillsParametersExceptTheTurns(t *testing.T) {
	t.Parallel()
	b := bound(t, "order, app_id, amount=0")
	args, _ := b.Args(map[string]any{"Order": "A-1", "appId": "beta", "amount": "9"}, goldenTurn("A"))
	require.Equal(t, map[string]any{"order": "A-1", "app_id": "app", "amount": "9"}, args)
}

func TestDeclaredIdentityIsWarnedOf(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `-- W/oneturn.yaml --
tools:
- {name: used, agent: A, file: t.py, function: f, schema: {type: object, properties: {AppID: {}, chat_id: {}, x: {}}}}
- {name: unused, agent: B, file: t.py, function: g, schema: {type: object, properties: {app_id: {}, x: {}}}}
- {name: service, agent: C, nats: {subject: shop.refund}, input: {type: object, properties: {user_id: {}}}}
-- W/t.py --
def f(app_id, chat_id, x): pass
def g(x): pass
`))
	var warned []string
	for _, line := range lines(set, diag.SeverityWarning) {
		if strings.Contains(line, "identity_from_model") {
			warned = append(warned, line)
		}
	}
	require.Len(t, warned, 2)
	require.Contains(t, warned[0], "fields AppID and chat_id of model used: the agent's output, not the turn, decides what tool used gets for AppID and chat_id")
	require.Contains(t, warned[1], "field user_id of its input schema: the agent's output, not the turn, decides what tool service gets for user_id")
}

// values lists the values of arguments.
func values(args map[string]any) []any {
	var all []any
	for _, v := range args {
		all = append(all, v)
	}
	return all
}
