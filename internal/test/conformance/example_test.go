package conformance_test

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/internal/test/conformance"
)

// A counterpart in Go, whatever its kind, passes the arguments and takes the result.
func ExampleFunction() {
	result, err := conformance.Function(context.Background(), "busy", []byte(`{"succeeds_at":2}`), conformance.Host{
		Identity: conformance.Identity{Attempt: 2}, // as a header of the request requests
	})
	fmt.Println(string(result), err)
	// Output: {"attempt":2} <nil>
}
