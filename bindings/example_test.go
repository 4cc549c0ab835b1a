package bindings_test

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

// A tool that is declared in Go code is resolved like one of a manifest.
func ExampleLoad() {
	set, err := bindings.Load(context.Background(), bindings.Options{
		Declared: []bindings.Declaration{{
			Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Tool: "greet",
			Schema: []byte(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}`),
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	binding, err := set.Resolve("Hello", "Greeter", "Greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _ := binding.Model.Check(map[string]any{"name": "Ada"})
	turn := &events.StructuredOutputReady{Workflow: "Hello", Agent: "Greeter"}
	args, _ := binding.Args(data, turn)
	fmt.Println(binding.Tool, args["name"], binding.Effect)

	_, err = set.Resolve("Hello", "Greeter", "Greting")
	fmt.Println(err)
	// Output:
	// greet Ada unsafe
	// resolve: no_binding: workflow "Hello" has no tool for agent "Greeter" and model "Greting": the model is not known; did you mean "Greeting"?
}
