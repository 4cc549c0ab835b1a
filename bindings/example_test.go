package bindings_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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

// The text of an agent is read once. What it changes is decided with the values of that moment, in the compare-and-set that
// stores it.
func ExampleRules() {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	manifest := `
context:
  interview_complete: {default: false, triggers: [{agent: Interviewer, match: {equals: NEXT}, ui_hidden: true}]}
`
	if err = errors.Join(os.Mkdir(filepath.Join(root, "Talk"), 0o700), os.WriteFile(filepath.Join(root, "Talk", "oneturn.yaml"), []byte(manifest), 0o600)); err != nil {
		fmt.Println(err)
		return
	}
	set, err := bindings.Load(context.Background(), bindings.Options{Root: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	values := set.StartValues("Talk", &bindings.Chat{App: "acme", ID: "c1", Workflow: "Talk"})
	effects := set.Rules("Talk").Text("Interviewer", " next\n")
	fmt.Println(effects.Hidden, bindings.Updates(effects.Steps, values))
	// Output: true [{interview_complete true}]
}
