package bindings_test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/target"
)

const blocksManifest = `
servers:
  files: {command: [files-server, --root, .], env: {MODE: quiet, DEPTH: 3, TOKEN: {file: token.txt}}, trust_annotations: true, sessions: 2}
  remote: {url: "https://mcp.example.com/mcp", headers: {Authorization: {file: /run/secrets/mcp, prefix: "Bearer "}}}
tools:
- {name: place, agent: A, nats: {subject: orders.place}}
- {name: cancel, agent: B, nats: {service: orders, endpoint: cancel, subjects: [shop.cancel, "till.>"], trust_metadata: true}}
- {name: read_file, agent: C, mcp: {server: files}}
- name: look
  agent: D
  mcp: {server: remote, tool: search, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
- name: pay
  agent: E
  http:
    url: http://bank.internal:8080/v1/pay
    method: put
    headers: {X-Api-Key: {file: ../key.txt}, Accept-Language: en}
    allow_http: true
    allow_private: [10.1.0.0/16, "fd00::/8"]
- name: agent:critic
  agent: F
  completion: {url: "https://llm.example.com/v1/chat/completions", model: large, system: Judge., temperature: 0.2, max_tokens: 500, headers: {Authorization: {file: token.txt}}, allow_private: []}
- {name: writer, id: poet, kind: agent, agent: G, nats: {subject: agents.writer}}
`

// targets are what blocksManifest declares, by tool, where its folder is folder.
func targets(folder string) map[string]target.Target {
	warm := 0.2
	token := target.Value{File: filepath.Join(folder, "token.txt")}
	return map[string]target.Target{
		"place":  &target.NATS{Subject: "orders.place"},
		"cancel": &target.NATS{Service: "orders", Endpoint: "cancel", Subjects: []string{"shop.cancel", "till.>"}, TrustMetadata: true},
		"read_file": &target.MCP{Tool: "read_file", Server: &target.MCPServer{
			Name: "files", Command: []string{"files-server", "--root", "."}, Dir: folder, TrustAnnotations: true, Sessions: 2,
			Env: map[string]target.Value{"MODE": {Text: "quiet"}, "DEPTH": {Text: "3"}, "TOKEN": token},
		}},
		"look": &target.MCP{
			Tool: "search", Digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			Server: &target.MCPServer{
				Name: "remote", URL: "https://mcp.example.com/mcp",
				Headers: map[string]target.Value{"Authorization": {File: "/run/secrets/mcp", Prefix: "Bearer "}},
			},
		},
		"pay": &target.HTTP{
			URL: "http://bank.internal:8080/v1/pay", Method: "PUT",
			Headers: map[string]target.Value{"X-Api-Key": {File: filepath.Join(filepath.Dir(folder), "key.txt")}, "Accept-Language": {Text: "en"}},
			Network: target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}},
		},
		"agent:critic": &target.Agent{ID: "critic", Completions: &target.Completions{
			URL: "https://llm.example.com/v1/chat/completions", Model: "large", System: "Judge.", Temperature: &warm, MaxTokens: 500,
			Headers: map[string]target.Value{"Authorization": token},
		}},
		"writer": &target.Agent{ID: "poet", NATS: &target.NATS{Subject: "agents.writer"}},
	}
}

func TestBlocksOfAToolGiveItsAddress(t *testing.T) {
	t.Parallel()
	kinds := map[string]bindings.Kind{
		"place": bindings.KindNATS, "cancel": bindings.KindNATS, "read_file": bindings.KindMCP, "look": bindings.KindMCP,
		"pay": bindings.KindHTTP, "agent:critic": bindings.KindAgent, "writer": bindings.KindAgent,
	}
	root := unpack(t, "-- W/oneturn.yaml --\n"+blocksManifest+"-- W/token.txt --\nx\n-- key.txt --\nx\n")
	set := load(t, root)
	require.Empty(t, lines(set, diag.SeverityError))
	require.Len(t, set.Bindings(), len(kinds))
	want := targets(filepath.Join(root, "W"))
	for _, b := range set.Bindings() {
		require.Equal(t, kinds[b.Tool], b.Kind, b.Tool)
		require.Equal(t, want[b.Tool], b.Target, b.Tool)
		_, mapped := b.Args(map[string]any{"order": "A-1"}, goldenTurn(b.Agent))
		require.False(t, mapped)
		require.False(t, b.AcceptsContext)
		require.False(t, b.EffectDeclared)
		if b.Tool == "agent:critic" {
			require.Equal(t, bindings.EffectNone, b.Effect)
		} else {
			require.Equal(t, bindings.EffectUnsafe, b.Effect)
		}
		trusted := b.Tool == "cancel" || b.Tool == "read_file"
		require.Equal(t, trusted, strings.Contains(b.EffectWhy, "the effect that the service or server declares applies"), b.Tool)
	}
}

func TestBlocksAreAdditiveKeysOfMozaiksTools(t *testing.T) {
	t.Parallel()
	for _, manifest := range []string{
		"-- W/tools.yaml --\nservers: {s: {command: run}}\ntools:\n" +
			"- {name: place, agent: A, tool_type: UI_Tool, nats: {subject: orders.place}, effect: keyed}\n- {name: m, agent: B, auto_invoke: true, kind: mcp, mcp: {server: s}}\n",
		`-- W/tools.json --
{"servers": {"s": {"command": ["run"]}}, "tools": [{"name": "place", "agent": "A", "tool_type": "UI_Tool", "nats": {"subject": "orders.place"}, "effect": "keyed"},
 {"name": "m", "agent": "B", "auto_invoke": true, "kind": "mcp", "mcp": {"server": "s"}}]}`,
		"-- W/oneturn.yaml --\nservers: {s: {command: run}}\n-- W/tools.yaml --\ntools:\n" +
			"- {name: place, agent: A, tool_type: UI_Tool, nats: {subject: orders.place}, effect: keyed}\n- {name: m, agent: B, auto_invoke: true, kind: mcp, mcp: {server: s}}\n",
	} {
		set := load(t, unpack(t, manifest))
		require.Empty(t, lines(set, diag.SeverityError))
		require.Len(t, set.Bindings(), 2)
		place, m := set.Bindings()[0], set.Bindings()[1]
		require.Equal(t, &target.NATS{Subject: "orders.place"}, place.Target)
		require.True(t, place.EffectDeclared)
		require.Equal(t, bindings.EffectKeyed, place.Effect)
		require.Equal(t, []string{"run"}, m.Target.(*target.MCP).Server.Command) //nolint:forcetypeassert // a panic fails the test
	}
}

func TestNetworksThatAllowEveryPrivateAddressAreNamed(t *testing.T) {
	t.Parallel()
	for network, wide := range map[string]bool{
		"0.0.0.0/0": true, "0.0.0.0/1": true, "::/0": true, "10.0.0.0/8": false, "127.0.0.0/8": false, "fc00::/7": false, "10.1.0.0/16": false,
	} {
		set := load(t, unpack(t, "-- W/oneturn.yaml --\nagents: {A: {}}\ntools:\n"+
			"- {name: t, agent: A, http: {url: \"https://a.internal/\", allow_private: [\""+network+"\"]}}\n"))
		require.Empty(t, lines(set, diag.SeverityError))
		require.Equal(t, wide, strings.Contains(strings.Join(lines(set, diag.SeverityWarning), "\n"), "network_wide"), network)
	}
}
