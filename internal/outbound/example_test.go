package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oneturn/oneturn/internal/outbound"
)

// The address of a cloud's metadata is refused, whatever name leads to it.
func Example() {
	c := outbound.New(outbound.Options{})
	defer c.Close()
	ctx := context.Background()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://169.254.169.254/latest/meta-data", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := c.HTTP.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	var refused *outbound.AddressError
	fmt.Println(errors.As(outbound.CallError(ctx, "ask", err), &refused), refused.Kind)
	// Output: true metadata
}
