package httptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/httptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// The arguments are the body of the request, the body of the answer is the result.
func Example() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var order struct {
			Pieces int `json:"pieces"`
		}
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"ordered":%d,"key":%q}`, order.Pieces, r.Header.Get("Idempotency-Key"))
	}))
	defer endpoint.Close()

	tool := httptool.New(&target.HTTP{
		URL:     endpoint.URL,
		Network: target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}, httptool.Options{})
	ctx := context.Background()
	result, err := tool.Invoke(ctx, &tools.Call{
		Name: "order", Args: map[string]any{"pieces": json.Number("3")}, IdempotencyKey: "4f1c",
	})
	fmt.Println(string(result.Value), err, tool.Close(ctx))
	// Output: {"ordered":3,"key":"4f1c"} <nil> <nil>
}
