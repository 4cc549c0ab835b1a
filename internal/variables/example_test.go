package variables_test

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/internal/variables"
)

func ExampleDelta() {
	delta := variables.Delta{Set: map[string]any{"plan": "accepted"}, Remove: []string{"draft"}}
	data, err := json.Marshal(delta)
	fmt.Println(string(data), err)
	// Output: {"set":{"plan":"accepted"},"remove":["draft"]} <nil>
}
