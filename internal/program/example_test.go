package program_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/program"
)

func ExampleCheck() {
	root, err := os.MkdirTemp("", "program")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	manifest := `
tools:
- {name: run_plan, kind: plan, agent: Assistant}
- {name: search, kind: go, auto: false, effect: none, input: {type: object, required: [city]}}
`
	if err := os.WriteFile(filepath.Join(root, "oneturn.yaml"), []byte(manifest), 0o600); err != nil {
		panic(err)
	}
	set, err := bindings.Load(context.Background(), bindings.Options{Root: root})
	if err != nil {
		panic(err)
	}
	b := set.Bindings()[0]
	compiler := program.NewCompiler(set, b, "Assistant", 1, nil)
	for _, plan := range []string{
		`{"type": "tool_calls", "calls": [{"tool_name": "search", "arguments": {"city": "Rome"}}]}`,
		`{"type": "tool_calls", "calls": [{"tool_name": "serch"}]}`,
	} {
		data, err := events.Decode([]byte(plan))
		if err != nil {
			panic(err)
		}
		checked := program.Check(compiler, data)
		fmt.Printf("%d steps, %d writes: %q\n", len(checked.Steps), checked.Writes, checked.Message)
	}
	// Output:
	// 1 steps, 5 writes: ""
	// 0 steps, 0 writes: "call 0: \"serch\" is not a tool that this plan may call. Did you mean \"search\"?"
}
