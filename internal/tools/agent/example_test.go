package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A model is asked for JSON by the schema of the result.
func Example() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"{\"city\":\"Paris\"}"},"finish_reason":"stop"}]}`)
	}))
	defer endpoint.Close()

	guide := agent.New(&target.Agent{ID: "guide", Completions: &target.Completions{
		URL: endpoint.URL + "/v1/chat/completions", Model: "small", System: "You know every tower.",
		Network: target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}}, agent.Options{Output: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)})
	ctx := context.Background()
	result, err := guide.Invoke(ctx, &tools.Call{Name: "agent:guide", Args: map[string]any{"prompt": "Where is the Eiffel tower?"}})
	fmt.Println(string(result.Value), err, guide.Close(ctx))
	// Output: {"city":"Paris"} <nil> <nil>
}
